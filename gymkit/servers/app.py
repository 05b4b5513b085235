"""The ground under every server: an ASGI app with health routes, JSON in and out, and errors that say what broke."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gymkit.errors import GymkitError, ServerError, WireError
from gymkit.wire import codec

log = logging.getLogger("gymkit")

Handler = Callable[[Request], Awaitable[Any]]

_HEALTH = ("/", "/health", "/healthz", "/livez", "/readyz")
_PREFIX = re.compile(r"/ng-rollout/([A-Za-z0-9][A-Za-z0-9._-]*)(/.*)")


class Refused(Exception):
    """A handler's way to answer with a status: ``raise Refused(409, "why", kind="session_lost")``."""

    def __init__(self, status: int, detail: Any, *, kind: str) -> None:
        self.status = status
        self.detail = detail
        self.kind = kind
        super().__init__(detail)


class Json(Response):
    """A JSON reply; bytes are taken as already encoded."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode the content."""
        return content if isinstance(content, bytes) else codec.dumps(content)


class ServerApp:
    """One server: an ASGI app, called in this process or put on a socket (``hosting``).

    A subclass says what kind it is and which handlers it has. ``name`` is the instance's name in the configuration.
    Dispatch is one look-up of method and path: none of our paths has a pattern, and a rollout crosses it ten times.
    """

    server_type: ClassVar[str]
    """``resources_servers``, ``responses_api_agents``, ``responses_api_models`` or ``environment_servers``."""
    implementation: ClassVar[str]
    """The name of the implementation in a configuration."""

    def __init__(self, name: str) -> None:
        self.name = name

    def handlers(self) -> Mapping[str, Handler]:
        """What this server answers besides health: ``"POST /path"`` to a coroutine that returns JSON or a Response."""
        raise NotImplementedError

    async def other(self, request: Request) -> Any:
        """Answer a request that no handler is named for."""
        raise Refused(404, f"{self.name} has no {request.method} {request.url.path}", kind="unknown_route")

    async def aclose(self) -> None:
        """Let go of connections and sessions."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI. The ``/ng-rollout/<id>`` prefix is taken off, so that a client may always use it."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path.startswith("/ng-rollout/") and (match := _PREFIX.fullmatch(path)):
            path = match[2]
            scope = {**scope, "path": path, "raw_path": path.encode()}
        request = Request(scope, receive)
        handler = self._handlers.get(f"{scope['method']} {path}", self.other)
        response = await self._answer(handler, request)
        await response(scope, receive, send)

    @cached_property
    def _handlers(self) -> dict[str, Handler]:
        return {**{f"GET {path}": _healthy for path in _HEALTH}, **self.handlers()}

    async def _answer(self, handler: Handler, request: Request) -> Response:
        try:
            content = await handler(request)
        except Exception as error:  # noqa: BLE001 - a server answers; it does not die of one request
            return self._error(request, error)
        return content if isinstance(content, Response) else Json(content)

    def _error(self, request: Request, error: Exception) -> Response:
        if isinstance(error, Refused):
            return Json({"detail": error.detail, "kind": error.kind}, error.status)
        if isinstance(error, WireError):
            return Json({"detail": error.problems, "kind": "invalid"}, 422)
        kind = error.kind if isinstance(error, ServerError) else "internal"
        if not isinstance(error, GymkitError | ClientDisconnect):
            log.exception("%s: %s %s failed", self.name, request.method, request.url.path, exc_info=error)
        return Json({"detail": f"{type(error).__name__}: {error}", "kind": kind, "server": self.name}, 500)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


async def json_body(request: Request) -> Any:
    """The request's body as JSON. Raises Refused(422)."""
    try:
        return codec.loads(await request.body())
    except ValueError as error:
        raise Refused(422, f"the body is not JSON: {error}", kind="invalid") from error


async def json_object(request: Request) -> dict[str, Any]:
    """The request's body as a JSON object. Raises Refused(422)."""
    body = await json_body(request)
    if not isinstance(body, dict):
        raise Refused(422, f"the body must be a JSON object, not a {type(body).__name__}", kind="invalid")
    return body


async def _healthy(_: Request) -> dict[str, str]:
    return {"status": "ok"}
