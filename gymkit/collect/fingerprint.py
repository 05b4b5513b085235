"""What makes two runs the same run: a digest of their configuration, and the differences in words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gymkit.wire import codec

_ABSENT: Final = object()


def fingerprint(config: Mapping[str, Any]) -> str:
    """The run's name: the first 12 hex digits of the SHA-256 of its canonical configuration."""
    return hashlib.sha256(codec.dumps_sorted(config)).hexdigest()[:12]


def differences(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """Yield one ``setting: before on disk, now asked for`` for each setting that differs, objects entered."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            yield from differences(before.get(key, _ABSENT), now.get(key, _ABSENT), f"{name}.{key}" if name else key)
    elif before is _ABSENT or now is _ABSENT or codec.dumps_sorted(before) != codec.dumps_sorted(now):
        yield f"{name}: {_shown(before)} on disk, {_shown(now)} asked for"


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "unset"
    text = codec.dumps(value).decode("utf-8", "replace")
    return text if len(text) <= 80 else f"{text[:79]}…"
