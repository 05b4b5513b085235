"""Arguments made from a tool's schema: some that fit, with a marker in their texts, and some that do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

_DEEP: Final = 8
_WRONG: Final[Mapping[str, Any]] = {
    "string": {"not": "text"},
    "integer": "not a number",
    "number": "not a number",
    "boolean": "not a boolean",
    "array": "not a list",
    "object": "not an object",
}


def arguments(tool: Mapping[str, Any], text: str = "abc") -> dict[str, Any]:
    """Arguments that the tool's schema allows: those that it requires, ``text`` wherever any text will do."""
    parameters = tool.get("parameters") or {}
    made = _made({**parameters, "type": "object"}, parameters, text, 0)
    return made if isinstance(made, dict) else {}


def misfits(tool: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is wrong, and arguments with which it is: one that is missing, one of another type."""
    parameters = tool.get("parameters") or {}
    fitting = arguments(tool)
    for name in parameters.get("required") or ():
        yield f"without {name}", {key: value for key, value in fitting.items() if key != name}
        break
    for name, schema in (parameters.get("properties") or {}).items():
        kind = _resolved(schema, parameters).get("type")
        if isinstance(kind, str) and kind in _WRONG:
            yield f"with {name} of another type", {**fitting, name: _WRONG[kind]}
            break


def texts(value: Any) -> Iterator[str]:
    """Every text in ``value``."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def _made(schema: Any, root: Schema, text: str, depth: int) -> Any:
    schema = _resolved(schema, root)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    if depth > _DEEP:
        return None
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _made(schema[key][0], root, text, depth + 1)
    return _of_type(schema, root, text, depth)


def _of_type(schema: Schema, root: Schema, text: str, depth: int) -> Any:
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            properties = schema.get("properties") or {}
            return {name: _made(properties.get(name, {}), root, text, depth + 1) for name in schema.get("required", ())}
        case "array":
            return [_made(schema.get("items", {}), root, text, depth + 1)] * max(1, schema.get("minItems", 1))
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return True
        case "null":
            return None
    return _text(schema, text)


def _number(schema: Schema) -> float:
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + 1
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - 1
    number: float = 1 if low is None else max(1, low)
    number = number if high is None else min(number, high)
    step = schema.get("multipleOf")
    return number - number % step + (step if number % step else 0) if step else number


def _text(schema: Schema, text: str) -> str:
    made = text.ljust(schema.get("minLength", 0), "a")
    return made[: schema.get("maxLength", len(made))]


def _resolved(schema: Any, root: Schema) -> Schema:
    """The schema behind a local ``$ref``."""
    for _ in range(_DEEP):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for part in reference[2:].split("/"):
            schema = schema.get(part) if isinstance(schema, Mapping) else None
    return {}
