"""Lines of a file as bytes, split on ``\\n`` alone: U+2028 and U+0085 inside a text end no line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

Tag = TypeVar("Tag")

_BUFFER: Final = 2**20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Problem:
    """A line that was not read as it stands."""

    path: Path
    """The file."""
    line: int
    """Number of the line, from 1."""
    reason: str
    """What is wrong, and what was done about it."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


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
    offset = 0
    with path.open("rb", buffering=_BUFFER) as file:
        for number, line in enumerate(file, 1):
            yield _bare(line, offset), Place(path, number, offset, len(line))
            offset += len(line)


def fetch_lines(path: Path, places: Iterable[tuple[Tag, Place]]) -> Iterator[tuple[Tag, Place, bytes]]:
    """Yield the lines of ``path`` that lie at ``places``, in that order."""
    with path.open("rb") as file:
        for tag, place in places:
            file.seek(place.offset)
            yield tag, place, _bare(file.read(place.size), place.offset)


def _bare(line: bytes, offset: int) -> bytes:
    return line if offset else line.removeprefix(_BYTE_ORDER_MARK)
