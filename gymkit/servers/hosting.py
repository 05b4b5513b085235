"""Apps on sockets: one in a thread of its own (``serve``), or several in the running loop (``serve_all``)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

import uvicorn

from gymkit.errors import ConfigError
from gymkit.servers.app import ServerApp
from gymkit.servers.http import AsgiApp

LOOPBACK = "127.0.0.1"
STOP_SECONDS = 5.0
"""Seconds that a stop waits for requests under way, at most."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises ConfigError when it cannot be had.

    The protocol is named because asyncio sets TCP_NODELAY only on sockets that name it: without, a kept-alive request
    takes 44 ms here instead of 0.7.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; choose another port, or 0") from error
    listener.listen(2048)
    listener.setblocking(False)
    return listener


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals alone: they belong to whoever started it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.accepting.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, then have the app let go of its own connections, in the loop that they belong to."""
        await super().shutdown(sockets)
        if isinstance(self.config.app, ServerApp):
            await self.config.app.aclose()


def configure(app: AsgiApp) -> _Server:
    """A uvicorn server for ``app`` that logs nothing of its own and touches no signal handler of ours."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    return _Server(config)


def url_of(listener: socket.socket) -> str:
    """Where this machine reaches a listening socket; one on all interfaces is reached over loopback."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Hosted:
    """A served app; ``url`` is where. Stop it with ``stop`` or use it in a ``with``."""

    def __init__(self, app: AsgiApp, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self.url = url_of(listener)
        self._server = configure(app)
        self._listener = listener
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name=f"gymkit-{self.port}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and wait, bounded, for requests under way."""
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS)
        self._server.force_exit = True
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Hosted {self.url}>"


def serve(app: AsgiApp, host: str = LOOPBACK, port: int = 0) -> Hosted:
    """Put ``app`` on a socket, in a thread with a loop of its own. Raises ConfigError for a port that is taken."""
    return Hosted(app, bind(host, port))


async def serve_all(apps: Sequence[tuple[AsgiApp, socket.socket]], started: Callable[[], None]) -> None:
    """Serve each app on its listening socket (``bind``) in the running loop, until this is cancelled.

    ``started`` is called once, when every app accepts requests. Once cancelled, it gives requests under way
    ``STOP_SECONDS``.
    """
    servers = [configure(app) for app, _ in apps]
    tasks = [
        asyncio.create_task(server.serve(sockets=[listener]))
        for server, (_, listener) in zip(servers, apps, strict=True)
    ]
    try:
        for server in servers:
            await server.accepting.wait()
        started()
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for server in servers:
            server.should_exit = True
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
