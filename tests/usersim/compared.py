"""Two replies to the same episode, side by side: everything but names that are minted, clocks, and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_MINTED = {"id", "created_at", "response_id", "wall_clock_s", "wall_clock_s_by_alias"}
_RESPONSE = ("output", "status", "usage")
_REQUEST = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
"""What the Responses API takes a request without these for."""


@dataclass(frozen=True)
class Difference:
    """One thing in which gymkit differs from NeMo Gym 0.7.0 on purpose."""

    why: str
    """In words."""
    where: str
    """The paths that it shows at, as a regular expression."""
    cases: tuple[str, ...] = ()
    """The cases that it shows in; none for all."""

    def covers(self, case: str, path: str) -> bool:
        """Whether it explains what is found at ``path`` of ``case``."""
        return (not self.cases or case in self.cases) and re.fullmatch(self.where, path) is not None


def comparable(reply: Mapping[str, Any]) -> Any:
    """``reply`` without what may differ between two runs of the same server."""
    told = dict(reply)
    if told.get("result"):
        said = [_invocation(each) for each in told["result"]["invocations"]]
        told["result"] = {**told["result"], "invocations": said}
    return _kept(told)


def _invocation(told: Mapping[str, Any]) -> dict[str, Any]:
    response = {name: told["response"].get(name) for name in _RESPONSE}
    return {**told, "request": {**_REQUEST, **told["request"]}, "response": response}


def _kept(value: Any) -> Any:
    """``value`` without nulls; a function that is not declared strict is none that says so."""
    if isinstance(value, Mapping):
        return {
            key: _kept(each)
            for key, each in value.items()
            if each is not None and not (key in _MINTED and not _is_call(value)) and (key, each) != ("strict", False)
        }
    return [_kept(each) for each in value] if isinstance(value, list) else value


def _is_call(value: Mapping[str, Any]) -> bool:
    """Whether an ``id`` pairs a call with its result."""
    return "function" in value


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Path and both values wherever the two are not the same; positions in lists are left out of the paths."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in sorted({*ours, *theirs}):
            yield from differences(ours.get(key), theirs.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for one, other in zip(ours, theirs, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif ours != theirs:
        yield path, ours, theirs
