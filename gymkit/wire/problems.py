"""From pydantic's errors to sentences: one short ``path: reason`` a problem, never a big value."""

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gymkit.errors import WireError

SHOWN = 5
"""Problems told in full; the rest are counted."""

Place = tuple[int | str, ...]

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_type": "text",
}


def wire_error(what: str, error: ValidationError, data: object) -> WireError:
    """Turn pydantic's ``error`` about ``data`` into a WireError that says ``what`` is invalid and where."""
    problems = sentences(error, data)
    rest = len(problems) - SHOWN
    return WireError(what, [*problems[:SHOWN], f"and {rest} more"] if rest > 0 else problems)


def sentences(error: ValidationError, data: object) -> list[str]:
    """Return one ``path: reason`` for each place in ``data`` that is wrong, in the order of the schema.

    A union reports once for each member that it tried: only what was found deepest is told, and what several members
    expected at the same place is joined by "or".
    """
    found: dict[Place, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        found.setdefault(_place(detail, data), []).append(detail)
    outer = {place[:depth] for place in found for depth in range(len(place))}
    return [f"{_path(place)}: {_reason(details)}" for place, details in found.items() if place not in outer]


def _place(detail: ErrorDetails, data: Any) -> Place:
    """Keep of an error's location what is a key or an index in ``data``; the rest are names of union members.

    The value of an item's ``type`` names a union member where it comes first, and may be a key of the item after that.
    """
    place: list[int | str] = []
    named = False
    for step in detail["loc"]:
        if isinstance(data, dict) and place and not named and step == data.get("type"):
            named = True
        elif (isinstance(data, dict) and step in data) or (isinstance(data, list) and isinstance(step, int)):
            data, named = data[step], False  # type: ignore[index]
            place.append(step)
    if detail["type"] == "missing":
        place.append(detail["loc"][-1])
    return tuple(place)


def _path(place: Place) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{_short(step)}" for step in place)
    return text.removeprefix(".") or "the whole"


def _reason(details: list[ErrorDetails]) -> str:
    expected = [phrase for detail in details if (phrase := _expected(detail))]
    if not expected:
        return _sentence(details[0])
    return f"must be {' or '.join(dict.fromkeys(expected))}, not {_got(details[0]['input'])}"


def _expected(detail: ErrorDetails) -> str | None:
    if detail["type"] == "literal_error":
        return _short(detail["ctx"]["expected"].replace("False", "false"), 120)
    return _EXPECTED.get(detail["type"])


def _sentence(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not a field of this object"
        case "union_tag_not_found":
            return _without_type(detail["input"])
        case "union_tag_invalid":
            return f"has the unknown type {_short(repr(detail['ctx']['tag']))}"
        case "value_error":
            return str(detail["ctx"]["error"])
        case _:
            return detail["msg"].replace("Input should", "must").replace("String should", "must")


def _without_type(given: Any) -> str:
    if not isinstance(given, dict):
        return f"must be an object, not {_got(given)}"
    kind = given.get("type")
    return "has no type" if kind is None else f"has a type that is not text but {_got(kind)}"


def _got(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str) and len(value) > 30:
        return f"a text of {len(value)} characters"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"  # the repr of a much longer one is an error
    return _short(repr(value))


def _short(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
