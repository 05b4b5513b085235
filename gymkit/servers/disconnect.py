"""A request whose client hangs up is given up: nobody waits for its answer, and a model may be paid by the second."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from gymkit.servers.http import AsgiApp, Receive, Scope, Send


async def until_disconnect(app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Call ``app``, and cancel it when its client goes away before the answer is out.

    A client in this process (``Route.to_app``) is not watched: it cancels what it calls by being cancelled itself.
    """
    if scope["type"] != "http" or scope.get("client") is None:
        await app(scope, receive, send)
        return
    watch = _Watch(receive, send)
    try:
        await app(scope, watch.receive, watch.send)
    except asyncio.CancelledError:
        if not watch.hung_up:
            raise
        watch.request.uncancel()
    finally:
        watch.stop()


class _Watch:
    """Passes messages on, and listens for the end of the connection once the request is whole."""

    def __init__(self, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.request = task
        self.hung_up = False
        self._receive = receive
        self._send = send
        self._answered = False
        self._listener: asyncio.Task[None] | None = None

    async def receive(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self._listener = asyncio.create_task(self._listen())
        return message

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._answered = True  # from here on the server itself says that the connection is done
        await self._send(message)

    async def _listen(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._answered:
            self.hung_up = True
            self.request.cancel()

    def stop(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
