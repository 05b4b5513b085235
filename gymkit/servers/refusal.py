"""What a server says in the body of an error: one sentence for a person to read, and what broke behind it."""

from __future__ import annotations

from typing import Any, Final

from gymkit.wire import codec

_LONGEST: Final = 1000  # characters
_PLACES: Final = ("detail", "error", "message")
_BEHIND: Final = frozenset({"unreachable", "timeout", "redirect", "not_json", "invalid_response"})


def sentence(body: bytes) -> str | None:
    """The sentence in an error's JSON body, where our servers, FastAPI and model services put it; None for none."""
    told = _fields(body)
    found = next((told[name] for name in _PLACES if told.get(name)), None)
    if isinstance(found, dict):
        found = found.get("message")
    if isinstance(found, list):
        found = "; ".join(map(_entry, found))
    return found.strip()[:_LONGEST] or None if isinstance(found, str) else None


def kind_behind(body: bytes) -> str | None:
    """How a call of the server's own broke, where one of ours says that one did; None for any other error."""
    told = _fields(body)
    kind = told.get("kind") if "detail" in told else None
    return kind if isinstance(kind, str) and kind in _BEHIND else None


def _fields(body: bytes) -> dict[str, Any]:
    """The object in an error's body; empty where there is none."""
    try:
        told = codec.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _entry(problem: object) -> str:
    """One entry of FastAPI's list of problems: where, and what."""
    if not isinstance(problem, dict) or not isinstance(problem.get("msg"), str):
        return str(problem)
    where = problem.get("loc")
    place = ".".join(map(str, where)) if isinstance(where, list) else ""
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])
