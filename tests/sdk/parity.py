"""The check that every plain method is the twin of its coroutine, for any class of the SDK."""

from __future__ import annotations

import inspect
from typing import Any


def twin_faults(cls: type[Any], *, only_async: frozenset[str] = frozenset()) -> list[str]:
    """One sentence per public ``a…`` coroutine method of ``cls`` without a true twin; none means parity.

    A twin has the name without the ``a``, the same signature and docstring, and was made by ``bridge.twin``.
    ``only_async`` names coroutine methods that are meant to have none.
    """
    coroutines = [
        name for name, member in inspect.getmembers(cls, inspect.iscoroutinefunction) if not name.startswith("_")
    ]
    return [fault for name in coroutines if name not in only_async for fault in _faults(cls, name)]


def _faults(cls: type[Any], name: str) -> list[str]:
    if not name.startswith("a"):
        return [f"{cls.__name__}.{name} is a coroutine without the prefix 'a'"]
    coroutine, plain = getattr(cls, name), getattr(cls, name[1:], None)
    if plain is None:
        return [f"{cls.__name__}.{name} has no twin {name[1:]}"]
    faults = []
    if inspect.unwrap(plain) is not inspect.unwrap(coroutine):
        faults.append(f"{cls.__name__}.{name[1:]} is written by hand; make it with bridge.twin({name})")
    if inspect.iscoroutinefunction(plain):
        faults.append(f"{cls.__name__}.{name[1:]} is a coroutine itself")
    if inspect.signature(plain) != inspect.signature(coroutine):
        faults.append(f"{cls.__name__}.{name[1:]} has another signature than {name}")
    if inspect.getdoc(plain) != inspect.getdoc(coroutine) or not inspect.getdoc(plain):
        faults.append(f"{cls.__name__}.{name[1:]} and {name} need one and the same docstring")
    return faults
