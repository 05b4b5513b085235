"""Lines of a file in bytes: a line ends at ``\\n`` and nowhere else (U+2028 and U+0085 inside a text end none)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about a file of rows that a reader should know."""

    path: Path
    """The file."""
    line: int | None
    """Number of the line, from 1; None where it is about the whole file."""
    reason: str
    """What is wrong, and what was done about it."""
    blank: bool = False
    """True for an empty line, which has lost nothing."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.line is None else f"{self.path}:{self.line}: {self.reason}"


class Raw(NamedTuple):
    """A line before it is decoded."""

    number: int
    """Counts from 1."""
    offset: int
    """Where the line starts, in bytes."""
    size: int
    """Its bytes in the file, line end included."""
    data: bytes
    """The line with its end, where it has one."""


def read_raw(file: IO[bytes]) -> Iterator[Raw]:
    """Yield the lines of ``file`` from its beginning; a byte order mark is not part of the first."""
    offset = 0
    for number, line in enumerate(file, start=1):
        yield Raw(number, offset, len(line), bare(line, offset))
        offset += len(line)


def bare(line: bytes, offset: int) -> bytes:
    """``line``, which starts at ``offset``, without the byte order mark that a first line may have."""
    return line if offset else line.removeprefix(_BYTE_ORDER_MARK)
