"""The ground under every server: an ASGI app with health routes, JSON in and out, and errors that say what broke."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property
from typing import Any, ClassVar

from gymkit.errors import GymkitError, ServerError, WireError
from gymkit.servers.http import (
    DIRECT,
    Answer,
    Disconnected,
    Receive,
    Refused,
    Request,
    Scope,
    Send,
    json_answer,
    read_request,
)

log = logging.getLogger("gymkit")

Handler = Callable[[Request], Awaitable[Any]]

_HEALTH = ("/", "/health", "/healthz", "/livez", "/readyz")
_PREFIX = re.compile(r"/ng-rollout/([A-Za-z0-9][A-Za-z0-9._-]*)(/training-token-capture)?(/.*)")


class ServerApp:
    """One server: an ASGI app, called in this process or put on a socket (``hosting``).

    A subclass says what kind it is and which handlers it has. ``name`` is the instance's name in the configuration.
    Dispatch is one look-up of method and path: none of our paths has a pattern, and a rollout crosses it ten times.
    """

    server_type: ClassVar[str]
    """``resources_servers``, ``responses_api_agents``, ``responses_api_models`` or ``environment_servers``."""
    implementation: ClassVar[str]
    """The name of the implementation in a configuration."""
    cut_short: ClassVar[frozenset[str]] = frozenset()
    """The handlers, by method and path, that are cancelled when their client goes away: those that take long."""

    def __init__(self, name: str) -> None:
        self.name = name

    def handlers(self) -> Mapping[str, Handler]:
        """What this server answers besides health: ``"POST /path"`` to a coroutine that returns JSON or an Answer."""
        raise NotImplementedError

    async def other(self, request: Request) -> Any:
        """Answer a request that no handler is named for."""
        raise Refused(404, f"{self.name} has no {request.method} {request.path}", kind="unknown_route")

    async def aggregated(self, request: Request) -> dict[str, Any]:
        """Answer ``/aggregate_metrics`` from here."""
        rows = request.json_object().get("verify_responses")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise Refused(422, "verify_responses: a list of objects is needed", kind="invalid")
        from gymkit.servers.aggregate import aggregate  # numbers come at the end of a run, not at its start

        return aggregate(rows)

    async def aclose(self) -> None:
        """Let go of connections and sessions."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI. The ``/ng-rollout/<id>[/training-token-capture]`` prefix is taken off: a client may always use it."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        prefix = _PREFIX.fullmatch(path) if path.startswith("/ng-rollout/") else None
        if prefix:
            path = prefix[3]
        try:
            request = await read_request(scope, receive, path)
        except Disconnected:
            return
        if prefix:
            request.rollout, request.training = prefix[1], prefix[2] is not None
        route = f"{request.method} {path}"
        work = self._answer(self._handlers.get(route, self.other), request)
        if route in self.cut_short and DIRECT not in scope:
            answer = await _unless_gone(work, receive)
        else:
            answer = await work
        if answer is not None:
            await answer(send)

    @cached_property
    def _handlers(self) -> dict[str, Handler]:
        return {**{f"GET {path}": _healthy for path in _HEALTH}, **self.handlers()}

    async def _answer(self, handler: Handler, request: Request) -> Answer:
        try:
            content = await handler(request)
        except Exception as error:  # noqa: BLE001 - a server answers; it does not die of one request
            return self._error(request, error)
        return content if isinstance(content, Answer) else json_answer(content)

    def _error(self, request: Request, error: Exception) -> Answer:
        if isinstance(error, Refused):
            return json_answer({"detail": error.detail, "kind": error.kind}, error.status)
        if isinstance(error, WireError):
            return json_answer({"detail": error.problems, "kind": "invalid"}, 422)
        kind = error.kind if isinstance(error, ServerError) else "internal"
        detail = str(error)
        if not isinstance(error, GymkitError):  # those are sentences of ours
            detail = f"{type(error).__name__}: {error}"
            log.exception("%s: %s %s failed", self.name, request.method, request.path, exc_info=error)
        return json_answer({"detail": detail, "kind": kind, "server": self.name}, 500)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


async def _unless_gone(work: Coroutine[Any, Any, Answer], receive: Receive) -> Answer | None:
    """The answer, or None when the client went away first, which cancels the work."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait([working])
        return None
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _healthy(_: Request) -> dict[str, str]:
    return {"status": "ok"}
