"""Whether a judge's reply is what its schema asked for: the part of JSON Schema that judges' data models use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def problems(schema: Mapping[str, Any], value: Any, *, absent_ok: bool = False) -> list[str]:
    """What is wrong with ``value``, one ``path: reason`` each; ``absent_ok`` lets required properties be absent."""
    return list(_problems(schema, value, "reply", schema, absent_ok))


def _problems(
    schema: Mapping[str, Any], value: Any, path: str, root: Mapping[str, Any], absent_ok: bool
) -> Iterator[str]:
    schema = _resolved(schema, root)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        found = [list(_problems(option, value, path, root, absent_ok)) for option in options]
        if all(found):
            yield min(found, key=len)[0]
        return
    if not _has_type(schema.get("type"), value):
        yield f"{path}: must be {schema['type']}, not {type(value).__name__}"
        return
    if "enum" in schema and not any(value == each and type(value) is type(each) for each in schema["enum"]):
        yield f"{path}: {value!r:.60} is not one of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: must be {schema['const']!r}"
    yield from _bounds(schema, value, path)
    if isinstance(value, dict):
        yield from _properties(schema, value, path, root, absent_ok)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, each in enumerate(value):
            yield from _problems(schema["items"], each, f"{path}[{index}]", root, absent_ok)


def _properties(
    schema: Mapping[str, Any], value: dict[str, Any], path: str, root: Mapping[str, Any], absent_ok: bool
) -> Iterator[str]:
    for name in () if absent_ok else schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: is missing"
    for name, each in schema.get("properties", {}).items():
        if name in value:
            yield from _problems(each, value[name], f"{path}.{name}", root, absent_ok)


def _bounds(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: {value} is below {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{path}: {value} is above {schema['maximum']}"


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    found: Any = root
    for part in reference[2:].split("/"):
        found = found[part]
    return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}


def _has_type(name: Any, value: Any) -> bool:
    if name is None:
        return True
    names = [name] if isinstance(name, str) else list(name)
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[each]) for each in names if each in _TYPES)
