"""A file that changes whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gymkit.errors import StoreError
from gymkit.wire import codec


class Replacement:
    """A file written beside ``path`` and moved there whole, or not at all. Raises StoreError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._aside = path.with_name(path.name + ".tmp")

    def __enter__(self) -> Self:
        try:
            self._file = self._aside.open("wb")
        except OSError as error:
            raise StoreError(f"{self._aside} cannot be written: {error.strerror}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # a full disk has been reported by the write
            self._file.close()
        self._aside.unlink(missing_ok=True)

    def write_lines(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write rows, one a line."""
        for row in rows:
            self.write(codec.dumps(row) + b"\n")

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        try:
            self._file.write(data)
        except OSError as error:
            raise StoreError(f"{self._aside} cannot be written: {error.strerror}") from error

    def commit(self) -> None:
        """Put what was written in the file's place."""
        try:
            self._file.close()
            self._aside.replace(self._path)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error
