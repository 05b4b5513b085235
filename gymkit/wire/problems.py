"""From pydantic's errors to sentences: one short ``path: reason`` a problem, never a big value."""

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gymkit.errors import WireError

SHOWN = 5
"""Problems told in full; the rest are counted."""


def wire_error(what: str, error: ValidationError, data: object, *, shown: int = SHOWN) -> WireError:
    """Turn pydantic's ``error`` about ``data`` into a WireError that says ``what`` is invalid and where."""
    problems = sentences(error, data)
    rest = len(problems) - shown
    return WireError(what, problems if rest <= 0 else [*problems[:shown], f"and {rest} more"])


def sentences(error: ValidationError, data: object) -> list[str]:
    """Return one ``path: reason`` for each place in ``data`` that is wrong, in the order of the schema.

    A union reports once for each member that it tried: only what was found deepest is kept, and reasons for the same
    place are joined by "or".
    """
    reasons: dict[tuple[int | str, ...], list[str]] = {}
    for detail in error.errors(include_url=False, include_context=True):
        found = reasons.setdefault(_place(detail, data), [])
        reason = _reason(detail)
        if reason not in found:
            found.append(reason)
    deepest = [place for place in reasons if not _is_outer(place, reasons)]
    return [f"{_path(place)}: {' or '.join(reasons[place])}" for place in deepest]


def _is_outer(place: tuple[int | str, ...], places: dict[tuple[int | str, ...], list[str]]) -> bool:
    return any(len(other) > len(place) and other[: len(place)] == place for other in places)


def _place(detail: ErrorDetails, data: Any) -> tuple[int | str, ...]:
    """Keep of an error's location what is a key or an index in ``data``; the rest are names of union members."""
    place: list[int | str] = []
    for step in detail["loc"]:
        if (isinstance(data, dict) and step in data) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step]
            place.append(step)
    if detail["type"] == "missing":
        place.append(detail["loc"][-1])
    return tuple(place)


def _path(place: tuple[int | str, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{_short(step)}" for step in place)
    return text.removeprefix(".") or "the object"


def _reason(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            return "is missing"
        case "union_tag_not_found":
            given = detail["input"]
            return "has no type" if isinstance(given, dict) else f"must be an object, not {_kind(given)}"
        case "union_tag_invalid":
            return f"has the unknown type {_short(repr(context['tag']))}"
        case "literal_error":
            return f"must be {_short(context['expected'], 80)}, not {_kind(detail['input'])}"
        case _:
            message = detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
            return f"must be {message}, not {_kind(detail['input'])}" if message != detail["msg"] else message


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        return _short(repr(value)) if not isinstance(value, str) or len(value) <= 30 else "a longer text"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__


def _short(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
