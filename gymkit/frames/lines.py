"""Lines of a file and where they lie, so that a row can be fetched again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from gymkit.wire.lines import bare, read_raw

Tag = TypeVar("Tag")

_BUFFER: Final = 2**20


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a line lies."""

    path: Path
    """The file."""
    line: int
    """Number of the line, from 1."""
    offset: int
    """Bytes before it."""
    size: int
    """Its bytes, line end included."""


def read_lines(path: Path) -> Iterator[tuple[bytes, Place]]:
    """Yield each line of ``path`` with its place, one at a time; nothing when there is no such file."""
    if not path.exists():
        return
    with path.open("rb", buffering=_BUFFER) as file:
        for number, offset, size, data in read_raw(file):
            yield data, Place(path, number, offset, size)


def fetch_lines(path: Path, places: Iterable[tuple[Tag, Place]]) -> Iterator[tuple[Tag, Place, bytes]]:
    """Yield the lines of ``path`` that lie at ``places``, in that order."""
    with path.open("rb") as file:
        for tag, place in places:
            file.seek(place.offset)
            yield tag, place, bare(file.read(place.size), place.offset)
