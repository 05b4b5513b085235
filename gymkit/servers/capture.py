"""Where the records of model calls go: files of NeMo Gym's form, or memory within a bound.

A server appends each record before it releases the reply; whoever collects the rollout reads them. A rollout of which
a record is missing says so (``Captured.incomplete``): a count over the rest would be too small.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

from gymkit.errors import ConfigError
from gymkit.servers.call import CallRecord
from gymkit.wire import codec

log = logging.getLogger("gymkit")

MEMORY_LIMIT = 256 * 1024 * 1024
"""Bytes of bodies that a capture in memory holds, at most."""

_LOST = 100_000


class Captured(NamedTuple):
    """What is known of one rollout's model calls."""

    calls: list[dict[str, Any]]
    """The records, in the order they were made."""
    incomplete: bool
    """True: at least one call could not be recorded, or its record is gone."""


class Capture(ABC):
    """Takes records in, gives them back by rollout."""

    observed: bool = True
    """Whether the calls are to be told on the rows, and not only used for their tokens."""

    @abstractmethod
    async def append(self, record: CallRecord) -> None:
        """Keep ``record``. Never raises: what cannot be kept makes the rollout incomplete."""

    @abstractmethod
    def read(self, rollout: str) -> Captured:
        """What is kept of ``rollout``."""

    @abstractmethod
    def clear(self, rollout: str) -> None:
        """Forget ``rollout``: before it is begun anew, or after its records went elsewhere."""

    def drain(self, rollout: str) -> Captured:
        """Read and clear."""
        captured = self.read(rollout)
        self.clear(rollout)
        return captured

    @abstractmethod
    async def collect(self, rollout: str) -> Captured:
        """What is known of ``rollout``, which has ended: memory is given back, files stay as evidence."""


class MemoryCapture(Capture):
    """In this process: the bodies as they came, parsed when they are read. Over ``limit`` bytes the oldest go.

    Servers in other threads may append to it.
    """

    def __init__(self, limit: int = MEMORY_LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._records: OrderedDict[str, list[CallRecord]] = OrderedDict()
        self._lost: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    async def append(self, record: CallRecord) -> None:
        """Keep ``record``, and let the oldest rollouts go while they do not fit."""
        with self._lock:
            self._records.setdefault(record.rollout, []).append(record)
            self._size += record.size
            while self._size > self._limit:
                rollout, records = self._records.popitem(last=False)
                self._size -= sum(each.size for each in records)
                self._lose(rollout)

    def read(self, rollout: str) -> Captured:
        """What is kept of ``rollout``."""
        with self._lock:
            records, lost = list(self._records.get(rollout, ())), rollout in self._lost
        return Captured([record.fields() for record in records], lost)

    def clear(self, rollout: str) -> None:
        """Forget ``rollout``."""
        with self._lock:
            self._size -= sum(record.size for record in self._records.pop(rollout, ()))
            self._lost.pop(rollout, None)

    async def collect(self, rollout: str) -> Captured:
        """Take the records out, the bodies of good calls as bytes (``codec.Raw``): they are only written on."""
        with self._lock:
            records = self._records.pop(rollout, [])
            self._size -= sum(record.size for record in records)
            lost = rollout in self._lost
            self._lost.pop(rollout, None)
        return Captured([record.light() for record in records], lost)

    def _lose(self, rollout: str) -> None:
        if rollout not in self._lost:
            log.warning("rollout %s: over %d bytes of model calls, the oldest records go", rollout, self._limit)
        self._lost[rollout] = None
        while len(self._lost) > _LOST:
            self._lost.popitem(last=False)

    def __repr__(self) -> str:
        return f"<MemoryCapture {len(self._records)} rollouts, {self._size} bytes>"


class FileCapture(Capture):
    """In ``directory``: ``<rollout>.capture.jsonl``, a line a call, and ``<rollout>.capture.incomplete`` as the mark.

    Several servers may share the directory, and a rollout's file with it. Raises ConfigError for a path that is not
    absolute, or that cannot be made.
    """

    kind = "capture"
    """What the files are called after the rollout."""
    setting = "model_call_capture_dir"
    """What messages call the directory."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        if not self.directory.is_absolute():
            raise ConfigError(f"{self.setting} must be an absolute path, not {str(directory)!r}")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.setting} {self.directory} cannot be made: {error.strerror}") from error

    async def append(self, record: CallRecord) -> None:
        """Write ``record``'s line, on disk when this returns."""
        # To the end even when the client is gone: a cancelled call is a call.
        await asyncio.shield(asyncio.to_thread(self._append, record))

    def read(self, rollout: str) -> Captured:
        """What the file of ``rollout`` holds."""
        try:
            content = self._file(rollout).read_bytes()
        except FileNotFoundError:
            content = b""
        calls, torn = [], False
        for line in content.split(b"\n"):
            if line:
                try:
                    calls.append(codec.loads(line))
                except ValueError:
                    torn = True
        return Captured(calls, torn or self._mark(rollout).exists())

    def clear(self, rollout: str) -> None:
        """Remove the files of ``rollout``."""
        self._file(rollout).unlink(missing_ok=True)
        self._mark(rollout).unlink(missing_ok=True)

    async def collect(self, rollout: str) -> Captured:
        """Read, beside whatever else goes on."""
        return await asyncio.to_thread(self.read, rollout)

    def line(self, record: CallRecord) -> dict[str, Any]:
        """What is written of ``record``."""
        return record.fields()

    def _append(self, record: CallRecord) -> None:
        try:
            _append_line(self._file(record.rollout), codec.dumps(self.line(record)) + b"\n")
        except (OSError, ValueError, TypeError) as error:
            log.warning("rollout %s: a model call could not be recorded: %s", record.rollout, error)
            self._mark_incomplete(record.rollout)

    def _mark_incomplete(self, rollout: str) -> None:
        try:
            self._mark(rollout).touch()
        except OSError as error:
            log.error("rollout %s: nor could it be marked as incomplete: %s", rollout, error)

    def _file(self, rollout: str) -> Path:
        return self.directory / f"{rollout}.{self.kind}.jsonl"

    def _mark(self, rollout: str) -> Path:
        return self.directory / f"{rollout}.{self.kind}.incomplete"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.directory}>"


def _append_line(path: Path, line: bytes) -> None:
    """Append a whole line, on disk when this returns, never mixed with another process's."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        _lock(fd)
        view = memoryview(line)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)


if sys.platform == "win32":

    def _lock(fd: int) -> None:
        """Windows appends a line of one write whole."""
else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
