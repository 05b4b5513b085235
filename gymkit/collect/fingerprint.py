"""What makes two runs the same run: a digest of their configuration, and the differences in words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gymkit.wire import codec

_ABSENT: Final = object()


def canonical(value: Any) -> bytes:
    """JSON bytes that are the same for equal values, whatever the order of their keys."""
    return codec.dumps(_ordered(value))


def fingerprint(config: Mapping[str, Any]) -> str:
    """The run's name: the first 12 hex digits of the SHA-256 of its canonical configuration."""
    return hashlib.sha256(canonical(config)).hexdigest()[:12]


def differences(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """Yield one ``setting: before on disk, now asked for`` for each setting that differs, objects entered."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            yield from differences(before.get(key, _ABSENT), now.get(key, _ABSENT), f"{name}.{key}" if name else key)
    elif before is _ABSENT or now is _ABSENT or canonical(before) != canonical(now):
        yield f"{name}: {_shown(before)} on disk, {_shown(now)} asked for"


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_ordered(each) for each in value]
    return value


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "unset"
    text = codec.dumps(value).decode("utf-8", "replace")
    return text if len(text) <= 80 else f"{text[:79]}…"
