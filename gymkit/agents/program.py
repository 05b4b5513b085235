"""A program that runs: what it prints within a bound, and an end that takes everything along that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self, cast

CLOSE_SECONDS = 5.0
"""Seconds that the output of a program may stay open after its end."""


class Printed(NamedTuple):
    """How a program ended."""

    status: int
    """Exit status; negative: the signal that ended it."""
    out: bytes
    """What it printed."""
    err: bytes
    """The end of what it wrote to stderr."""


class TooMuch(Exception):
    """It printed more than it may."""


class HeldOpen(Exception):
    """Something that it started has left its process group and holds its output."""


class Program(asyncio.SubprocessProtocol):
    """One run. asyncio's own ``Process`` waits for the pipes, which what the program leaves running holds open."""

    def __init__(self, limit: int, tail: int) -> None:
        loop = asyncio.get_running_loop()
        self._limit, self._tail = limit, tail
        self._out, self._err = bytearray(), bytearray()
        self._exited: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, folder: Path, env: Mapping[str, str], limit: int, tail: int = 8_000
    ) -> Self:
        """Start it in ``folder``, in a process group of its own. Raises OSError, or ValueError for a null character."""
        loop = asyncio.get_running_loop()
        _, program = await loop.subprocess_exec(
            lambda: cls(limit, tail), *argv, cwd=folder, env=dict(env), start_new_session=True
        )
        return program

    async def finish(self, stdin: bytes) -> Printed:
        """Tell it ``stdin`` and wait for its end; cancelled, or done, nothing of it is left.

        Raises TooMuch and HeldOpen.
        """
        assert self._transport is not None
        try:
            feed = cast(asyncio.WriteTransport | None, self._transport.get_pipe_transport(0))
            if feed is not None and not feed.is_closing():  # a program that asks for no words may have ended by now
                feed.write(stdin)
                feed.close()
            await asyncio.wait([self._exited])
            _kill_group(self._transport.get_pid())
            await asyncio.wait([self._closed], timeout=CLOSE_SECONDS)
            if len(self._out) > self._limit:
                raise TooMuch
            if not self._closed.done():
                raise HeldOpen
            return Printed(self._transport.get_returncode() or 0, bytes(self._out), bytes(self._err))
        finally:
            if not self._exited.done():
                _kill_group(self._transport.get_pid())
                await asyncio.wait([self._exited], timeout=CLOSE_SECONDS)
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It has started."""
        self._transport = cast(asyncio.SubprocessTransport, transport)  # uvloop's is none by its class

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It printed something."""
        if fd != 1:
            self._err += data
            del self._err[: -self._tail]
        elif len(self._out) <= self._limit:
            self._out += data
            if len(self._out) > self._limit and self._transport is not None:
                _kill_group(self._transport.get_pid())

    def process_exited(self) -> None:
        """It has ended; its pipes may be open yet."""
        if not self._exited.done():
            self._exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Its pipes are closed as well."""
        if not self._closed.done():
            self._closed.set_result(None)


def _kill_group(pid: int | None) -> None:
    """End the group that a program leads, whether or not it leads it still."""
    if pid is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGKILL)
