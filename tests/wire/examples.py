"""Valid objects made from the openai package's own types, and objects that are wrong in exactly one place.

``examples`` reads a type's annotations: the first example of a type is its base, every further one differs from it in
one place (another member of a union, another literal), so that all of a type's shapes are seen.
"""

from __future__ import annotations

import collections.abc
import copy
import datetime
import os
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Required, Union

import typing_extensions
from pydantic import BaseModel

_PLAIN: dict[Any, Any] = {str: "text", int: 3, float: 0.5, bool: True, object: {"any": 1}, Any: {"any": 1}}
_PLAIN |= {typing.IO[bytes]: "text", os.PathLike: "text", os.PathLike[str]: "text"}  # anthropic reads the file
_PLAIN |= {datetime.datetime: "2026-01-01T00:00:00Z"}
_DEEPEST = 6


def examples(annotation: Any, *, full: bool, depth: int = 0) -> list[Any]:
    """Return valid values of ``annotation``; ``full`` fills optional fields too."""
    if annotation in _PLAIN:
        return [copy.copy(_PLAIN[annotation])]
    if annotation is type(None):
        return [None]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        return _of({f.alias or name: (f.annotation, f.is_required()) for name, f in fields.items()}, full, depth)
    if typing_extensions.is_typeddict(annotation):
        hints = typing_extensions.get_type_hints(annotation, include_extras=True)
        return _of({name: (hint, typing.get_origin(hint) is Required) for name, hint in hints.items()}, full, depth)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Annotated, Required):
        return examples(arguments[0], full=full, depth=depth)
    if origin is Literal:
        return list(arguments)
    if origin in (Union, types.UnionType):
        members = sorted(arguments, key=lambda member: member is type(None))
        return [value for member in members for value in examples(member, full=full, depth=depth)]
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        return [[value] for value in examples(arguments[0], full=full, depth=depth)]
    if origin is dict:
        return [{"key": value} for value in examples(arguments[1], full=full, depth=depth)]
    raise NotImplementedError(f"no example for {annotation!r}")


def _of(fields: dict[str, tuple[Any, bool]], full: bool, depth: int) -> list[Any]:
    values = {
        name: examples(annotation, full=full, depth=depth + 1)
        for name, (annotation, required) in fields.items()
        if required or (full and depth < _DEEPEST)
    }
    base = {name: options[0] for name, options in values.items()}
    further = [{**base, name: option} for name, options in values.items() for option in options[1:]]
    return [base, *further]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside ``value``, outermost first."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from places(inner, (*path, key))


_WRONG: list[Any] = [None, True, 7, -1.5, "", "bogus", "7", [], ["bogus"], [{}], {}, {"type": "bogus"}]


def mutations(value: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield ``(path, what was done, the mutated copy)`` for each place of ``value``: dropped, replaced, added to."""
    for path in places(value):
        label = "".join("[]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")
        if isinstance(path[-1], str):
            yield label, "drop", _changed(value, path, lambda parent, key: parent.pop(key))
        for wrong in _WRONG:
            if wrong != _at(value, path) or type(wrong) is not type(_at(value, path)):
                yield label, f"= {wrong!r}", _changed(value, path, _setter(wrong))
        if isinstance(_at(value, path), dict):
            yield label, "extra", _changed(value, (*path, "x_extra"), _setter({"kept": True}))


def _setter(new: Any) -> Any:
    def put(parent: Any, key: Any) -> None:
        parent[key] = copy.deepcopy(new)

    return put


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _changed(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    mutated = copy.deepcopy(value)
    change(_at(mutated, path[:-1]), path[-1])
    return mutated
