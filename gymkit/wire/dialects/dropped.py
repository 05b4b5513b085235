"""What a conversion could not take along."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

_INDEX = re.compile(r"\[\d+\]")


class Dropped(NamedTuple):
    """One thing that the other dialect has no place for."""

    path: str
    """Where it stood: ``messages[2].name``."""
    reason: str
    """Why it was left out."""

    @property
    def kind(self) -> str:
        """The path without positions: what to group by."""
        return _INDEX.sub("[]", self.path)


class Converted(NamedTuple):
    """What a conversion made."""

    value: dict[str, Any]
    """The object in the other dialect."""
    dropped: list[Dropped]
    """What it has no place for."""


Drops = list[Dropped]
"""Collects what is dropped while a conversion runs."""


def copy_fields(source: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The fields of ``source`` among ``names`` that are there and not null."""
    return {name: source[name] for name in names if source.get(name) is not None}


def settings_of(source: Mapping[str, Any], name: str, kinds: Mapping[str, type], drops: Drops) -> dict[str, Any]:
    """The settings under ``name`` that are read here, each of its kind; another kind is reported and left out."""
    found = {}
    for key, kind in kinds.items():
        value = (source.get(name) or {}).get(key)
        if isinstance(value, kind):
            found[key] = value
        elif value is not None:
            drops.append(Dropped(f"{name}.{key}", "it is of a kind that this setting does not have"))
    return found


def drop_fields(source: Mapping[str, Any], known: Container[str], where: str, there: str, drops: Drops) -> None:
    """Report each field of ``source`` that is set and not among ``known``: ``there`` has no such field."""
    for name, value in source.items():
        if value is not None and name not in known:
            drops.append(Dropped(f"{where}{name}", f"{there} has no such field"))
