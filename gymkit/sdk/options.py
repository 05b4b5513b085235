"""The options of a run: ``Env.rollouts`` takes them by name, and says which they are."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, SupportsIndex

from gymkit.errors import ConfigError
from gymkit.nearest import nearest

_INTERNAL: Final = frozenset({"again"})
_COUNTS: Final = ("repeats", "limit", "concurrency")


def checked_options(options: Mapping[str, Any], *, like: Callable[..., Any]) -> dict[str, Any]:
    """``options`` as ``like`` takes them. Raises ConfigError for a name that is none, and for a count that is none."""
    known = {each.name for each in _options(like)} | _INTERNAL
    for name in options:
        if name not in known:
            raise ConfigError(f"rollouts has no option {name!r}; {nearest(name, known - _INTERNAL)}")
    counts = {name: _count(name, options[name]) for name in _COUNTS if options.get(name) is not None}
    return {**options, **counts}


def spell_out(method: Callable[..., Any], *, like: Callable[..., Any]) -> None:
    """Let ``method``, which takes ``**options``, show those of ``like`` in ``help`` and in completions."""
    signature = inspect.signature(method)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    method.__dict__["__signature__"] = signature.replace(parameters=[*own, *_options(like)])


def _options(like: Callable[..., Any]) -> list[inspect.Parameter]:
    each = inspect.signature(like).parameters.values()
    return [one for one in each if one.kind is inspect.Parameter.KEYWORD_ONLY and one.name not in _INTERNAL]


def _count(name: str, value: object) -> int:
    if not isinstance(value, SupportsIndex) or isinstance(value, bool) or operator.index(value) < 1:
        raise ConfigError(f"{name} must be a whole number, at least 1, not {value!r:.60}")
    return operator.index(value)
