"""JSON lines on disk, read and written in bytes: a line ends at ``\n`` and nowhere else.

A file may have been cut by a killed process. What is wrong with it is reported by line and never ends a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from gymkit.errors import StoreError
from gymkit.wire import codec
from gymkit.wire.lines import Problem, read_raw

_BLOCK = 1 << 20


class Line(NamedTuple):
    """A row and where it stands."""

    number: int
    """Counts from 1."""
    offset: int
    """Where the line starts, in bytes."""
    row: dict[str, Any]
    """The decoded object."""


def read(path: Path, problems: list[Problem], load: Callable[[bytes], Any] = codec.loads) -> Iterator[Line]:
    """Yield the rows of ``path``, one in memory at a time, as ``load`` reads them (it raises ValueError).

    A line that is blank or holds no JSON object is left out and added to ``problems``. Raises OSError.
    """
    with path.open("rb") as file:
        for number, offset, _, data in read_raw(file):
            try:
                row = decode(data, load)
            except ValueError as error:
                problems.append(Problem(path, number, str(error), blank=not data.strip()))
            else:
                yield Line(number, offset, row)


def read_whole(path: Path) -> Iterator[Line]:
    """Yield the rows of a file that may have no fault. Raises StoreError for a broken line and for no file."""
    problems: list[Problem] = []
    try:
        for line in read(path, problems):
            _refuse_broken(problems)
            yield line
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    _refuse_broken(problems)


def _refuse_broken(problems: list[Problem]) -> None:
    if broken := [problem for problem in problems if not problem.blank]:
        raise StoreError(str(broken[0]))


def decode(data: bytes, load: Callable[[bytes], Any] = codec.loads) -> dict[str, Any]:
    """The row in a line. Raises ValueError with the reason."""
    if not data.strip():
        raise ValueError("the line is blank")
    try:
        row = load(data)
    except ValueError as error:
        raise ValueError(f"the line is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError(f"the line holds a JSON {type(row).__name__}, not an object")
    return row


def repair(path: Path) -> Problem | None:
    """Make sure that ``path`` ends with a complete line, so that the next row starts on its own.

    A last line without an end gets one when it is a whole row and is cut off when it is not. Returns what was done.
    """
    with path.open("r+b") as file:
        start = _last_line(file)
        file.seek(start)
        tail = file.read()
        if not tail:
            return None
        try:
            decode(tail)
        except ValueError:
            file.truncate(start)
            done = f"the last line was torn: its {len(tail)} bytes were cut off"
        else:
            file.write(b"\n")
            done = "the last line had no end and was given one"
        return Problem(path, _count_ends(file, start) + 1, done)


def _last_line(file: IO[bytes]) -> int:
    """Offset just after the last line end."""
    position = file.seek(0, os.SEEK_END)
    while position > 0:
        start = max(0, position - _BLOCK)
        file.seek(start)
        found = file.read(position - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def _count_ends(file: IO[bytes], limit: int) -> int:
    file.seek(0)
    ends = 0
    while limit > 0 and (block := file.read(min(_BLOCK, limit))):
        ends += block.count(b"\n")
        limit -= len(block)
    return ends


class Appender:
    """Adds rows to the end of a file, each with one write that is with the system when ``append`` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self.fd = os.open(path, flags, 0o666)

    def append(self, row: dict[str, Any]) -> None:
        """Write ``row`` as one line. Raises StoreError; nothing of the row then stays in the file."""
        data = codec.dumps(row) + b"\n"
        try:
            written = os.write(self.fd, data)
            if written != len(data):
                self._finish(data, written)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot take another row: {error.strerror}; the rows before it stay"
            ) from error

    def _finish(self, data: bytes, written: int) -> None:
        """The rare write that the system took only in part (a full disk, a line beyond 2 GB)."""
        end = os.fstat(self.fd).st_size - written
        try:
            while written < len(data):
                written += os.write(self.fd, data[written:])
        except OSError:
            os.ftruncate(self.fd, end)
            raise

    def clear(self) -> None:
        """Empty the file, which stays the same file. Raises StoreError."""
        try:
            os.ftruncate(self.fd, 0)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be emptied: {error.strerror}") from error

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.fd)
