"""The way of a rollout's own program to the model server: a loopback address for each rollout, shut when it ends.

``http://127.0.0.1:<port>/<key>/ng-rollout/<id>/v1`` is what a program takes for OpenAI's service; the model server
sees ``/ng-rollout/<id>/v1/…``, so it records the call as the rollout's. Nobody can guess another rollout's key, and
a call under way is cut when its rollout ends, so that nothing goes on thinking for a rollout that is over.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gymkit.agents.spent import Spent
from gymkit.errors import ServerError
from gymkit.servers.correlation import ROOT
from gymkit.servers.disconnect import until_disconnect
from gymkit.servers.hosting import LOOPBACK, bind, serve_all, url_of
from gymkit.servers.http import Answer, Disconnected, Receive, Request, Scope, Send, json_answer, read_request
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.wire import codec

CONNECT_ATTEMPTS = 3
"""How often a connection to the model server is tried."""

DIALECTS = ("/v1/responses", "/v1/chat/completions", "/v1/messages")

_SENT = (b"x-session-id",)
_RETURNED = (b"content-type", b"retry-after", b"x-should-retry")
_OUTPUT_LIMIT = {
    "/v1/responses": "max_output_tokens",
    "/v1/chat/completions": "max_completion_tokens",
    "/v1/messages": "max_tokens",
}
_SAMPLING = ("temperature", "top_p")

Other = Callable[[Request], Awaitable[Answer]]


class Seat:
    """One rollout's address. ``prefix`` names it to the model server; ``params`` are its task's request."""

    def __init__(self, route: Route | None, url: str, prefix: str, params: Mapping[str, Any]) -> None:
        self.key = secrets.token_urlsafe(12)
        self.url = f"{url}/{self.key}"
        self.model_url = f"{self.url}{prefix}"
        """What Anthropic's clients take for their base URL; OpenAI's take ``{model_url}/v1``."""
        self.others: dict[str, Other] = {}
        """What is answered beside the model, by path."""
        self.spent = Spent()
        self.calls = 0
        """Calls of the model under the rollout's name so far."""
        self.failure: ServerError | None = None
        """Why the latest call of the model failed; None when it did not."""
        self._route = route
        self._prefix = prefix
        self._params = params
        self._cookies = CookieJar()
        self._at_work: set[asyncio.Task[Any]] = set()

    async def answer(self, path: str, request: Request) -> Answer:
        """Answer one request, unless the rollout ends first."""
        if other := self.others.get(path):
            work: asyncio.Task[Answer] = asyncio.ensure_future(other(request))
        else:
            path = path.removeprefix(self._prefix)
            if self._route is None:
                return _error(404, "this agent was given no model")
            if request.method != "POST" or path not in DIALECTS:
                return _error(404, f"there is no {request.method} {path} here, only POST {', '.join(DIALECTS)}")
            work = asyncio.ensure_future(self._ask(self._route, path, request))
        self._at_work.add(work)
        try:
            await asyncio.wait([work])
        finally:
            work.cancel()
            self._at_work.discard(work)
        return OVER if work.cancelled() else work.result()

    def leave(self) -> None:
        """The rollout is over."""
        for work in self._at_work:
            work.cancel()

    async def _ask(self, route: Route, path: str, request: Request) -> Answer:
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers if name in _SENT}
        body = self._with_settings(path, request.body)
        if self._prefix:  # on the rollout's record, these are calls of the agent's
            self.calls += 1
            headers.setdefault("x-session-id", ROOT)
        try:
            reply = await route.post(
                self._prefix + path, body, cookies=self._cookies, headers=headers, attempts=CONNECT_ATTEMPTS
            )
        except ServerError as error:
            self.failure = error
            return _error(502, str(error))
        self._cookies.take(reply)
        self._heard(path, reply)
        return Answer(reply.body, reply.status, [line for line in reply.headers if line[0] in _RETURNED])

    def _heard(self, path: str, reply: Reply) -> None:
        self.failure = None
        try:
            reply.expect_ok()
        except ServerError as error:
            self.failure = error
        else:
            self.spent.add(path, reply.body)

    def _with_settings(self, path: str, body: bytes) -> bytes:
        """The sampling that the task asks for, laid under what the program sends."""
        settings = {name: self._params[name] for name in _SAMPLING if self._params.get(name) is not None}
        if (limit := self._params.get("max_output_tokens")) is not None:
            settings[_OUTPUT_LIMIT[path]] = limit
        if not settings:
            return body
        try:
            asked = codec.loads(body)
        except ValueError:
            return body  # the model server says so
        return codec.dumps({**settings, **asked}) if isinstance(asked, dict) else body


class ModelDoor:
    """All seats of one agent, on one port that is opened with the first. ``model`` is where calls go.

    ``correlated`` says whether the model server's paths name the rollout, as ours do; without a ``model`` there is only
    what a seat answers itself.
    """

    def __init__(self, model: Route | None, *, correlated: bool = True) -> None:
        self._model = model
        self._correlated = correlated
        self._seats: dict[str, Seat] = {}
        self._serving: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[str] | None = None

    async def seat(self, rollout: str | None, training: bool, params: Mapping[str, Any]) -> Seat:
        """An address for a rollout; give it up with ``leave``."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        url = await asyncio.shield(self._opening)
        tokens = "/training-token-capture" if training else ""
        prefix = f"/ng-rollout/{rollout}{tokens}" if rollout and self._correlated else ""
        seat = Seat(self._model, url, prefix, params)
        self._seats[seat.key] = seat
        return seat

    def leave(self, seat: Seat) -> None:
        """Shut the address; a call under way is answered that the rollout is over."""
        self._seats.pop(seat.key, None)
        seat.leave()

    async def aclose(self) -> None:
        """Shut all, and let go of the model server."""
        for seat in list(self._seats.values()):
            self.leave(seat)
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
        self._serving = self._opening = None
        if self._model is not None:
            await self._model.aclose()

    async def _open(self) -> str:
        listener, ready = bind(LOOPBACK, 0), asyncio.Event()
        self._serving = asyncio.create_task(serve_all([(self, listener)], ready.set))
        self._serving.add_done_callback(lambda _: listener.close())
        await ready.wait()
        return url_of(listener)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI; a call whose client hangs up is cancelled."""
        if scope["type"] == "http":
            await until_disconnect(self._serve, scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        key, _, rest = scope["path"][1:].partition("/")
        try:
            request = await read_request(scope, receive, f"/{rest}")
        except Disconnected:
            return
        seat = self._seats.get(key)
        answer = OVER if seat is None else await seat.answer(request.path, request)
        await answer(send)


def _error(status: int, message: str) -> Answer:
    """An error as the client libraries of both providers read it; they need not ask again."""
    told = {"type": "error", "error": {"type": "invalid_request_error", "message": message, "code": None}}
    return json_answer(told, status, {b"x-should-retry": b"false"})


OVER = _error(410, "this rollout is over, and its address with it")
