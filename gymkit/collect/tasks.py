"""The task rows of a run, from a file or from memory: read as often as needed, held only as bytes or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from gymkit.collect.lines import decode
from gymkit.errors import InputError
from gymkit.wire import codec
from gymkit.wire.lines import Raw, read_raw


class Tasks:
    """Task rows as JSON lines. Make one with ``from_path`` or ``from_rows``, close it or use it in a ``with``."""

    def __init__(self, name: str, file: IO[bytes], *, numbered: bool) -> None:
        self.name = name
        """What messages call the source."""
        self._file = file
        self._numbered = numbered

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Self:
        """Rows of a JSON lines file; a pipe is read into memory. Raises InputError for a file that cannot be read."""
        path = Path(path)
        try:
            file = path.open("rb") if path.is_file() else io.BytesIO(path.read_bytes())
        except OSError as error:
            raise InputError([f"{path}: the task file cannot be read: {error.strerror}"]) from error
        return cls(str(path), file, numbered=True)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], name: str = "rows") -> Self:
        """Rows that are dicts already. Raises InputError for what is no JSON object, all of it at once."""
        file = io.BytesIO()
        problems = []
        for index, row in enumerate(rows):
            try:
                file.write(codec.dumps(dict(row)) + b"\n")
            except (TypeError, ValueError) as error:
                problems.append(f"{name}[{index}]: the row is not a JSON object: {error}")
        if problems:
            raise InputError(problems)
        return cls(name, file, numbered=False)

    def lines(self) -> Iterator[Raw]:
        """The lines from the first on, blank ones left out."""
        self._file.seek(0)
        return (line for line in read_raw(self._file) if line.data.strip())

    def place(self, number: int) -> str:
        """How a message names line ``number``: ``file:line`` counted from 1, or ``rows[index]`` from 0."""
        return f"{self.name}:{number}" if self._numbered else f"{self.name}[{number - 1}]"

    def at(self, offset: int) -> dict[str, Any]:
        """The row whose line starts at ``offset``."""
        self._file.seek(offset)
        return decode(next(read_raw(self._file)).data)

    def rows(self) -> list[dict[str, Any]]:
        """Every row. Raises InputError that names each line which holds none."""
        rows, problems = [], []
        for line in self.lines():
            try:
                rows.append(decode(line.data))
            except ValueError as error:
                problems.append(f"{self.place(line.number)}: {error}")
        if problems:
            raise InputError(problems)
        return rows

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
