"""A model server: the Responses API, Chat Completions and Anthropic Messages in front of one model.

A subclass answers one dialect, ``responses``, and may answer others natively; the rest is converted. Every call of a
rollout is recorded before its reply is released, the failed and the refused ones too. A client that streams is served
from the whole reply.
"""

from __future__ import annotations

import asyncio
import logging
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from gymkit.errors import WireError
from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.call import ModelCall, ModelFailed, category_of, record_of
from gymkit.servers.capture import Capture
from gymkit.servers.cookie import SignedCookie
from gymkit.servers.dialect import CHAT, MESSAGES, RESPONSES, Admitted, Dialect
from gymkit.servers.disconnect import until_disconnect
from gymkit.servers.http import Answer, Receive, Refused, Request, Scope, Send, json_answer
from gymkit.servers.token_record import token_record
from gymkit.wire import codec
from gymkit.wire.dialects.reply_to_chat import reply_to_chat
from gymkit.wire.dialects.reply_to_messages import reply_to_messages
from gymkit.wire.dialects.request_from_chat import request_from_chat
from gymkit.wire.dialects.request_from_messages import request_from_messages
from gymkit.wire.streams.sse import KEEP_ALIVE

log = logging.getLogger("gymkit")

Params = dict[str, Any]
Ask = Callable[[Params, ModelCall], Awaitable[dict[str, Any]]]

_EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,200}")
_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class _Outcome(NamedTuple):
    """How a call ended: with a reply or without, and what a client that does not stream is sent."""

    reply: dict[str, Any] | None
    answer: Answer
    message: str = ""
    kind: str = ""


class ModelServer(ServerApp):
    """Base of every model server. ``capture`` keeps records of the calls that belong to a rollout."""

    server_type = "responses_api_models"

    patience: float = 15.0
    """Seconds that a streaming client waits for a status: an error within them is still an HTTP error."""
    heartbeat: float = 15.0
    """Seconds between the comments that keep an open stream alive."""

    def __init__(self, name: str, *, capture: Capture | None = None) -> None:
        super().__init__(name)
        self.capture = capture
        self._cookie = SignedCookie(f"{type(self).__name__}___{name}")
        self._reported: set[tuple[str, str]] = set()

    @abstractmethod
    async def responses(self, params: Params, call: ModelCall) -> dict[str, Any]:
        """Answer a Responses request with a Response. Raises ModelFailed."""

    async def chat_completions(self, chat: Params, call: ModelCall) -> dict[str, Any]:
        """Answer a chat request with a chat completion; by default by way of ``responses``."""
        response = await self.responses(call.converted(request_from_chat(chat)), call)
        return call.converted(reply_to_chat(_not_failed(response)))

    async def messages(self, body: Params, call: ModelCall) -> dict[str, Any]:
        """Answer a Messages request with a message; by default by way of ``responses``."""
        response = await self.responses(call.converted(request_from_messages(body)), call)
        return call.converted(reply_to_messages(_not_failed(response)))

    def handlers(self) -> Mapping[str, Handler]:
        """The three dialects."""
        return {
            "POST /v1/responses": lambda request: self._serve(RESPONSES, self.responses, request),
            "POST /v1/chat/completions": lambda request: self._serve(CHAT, self.chat_completions, request),
            "POST /v1/messages": lambda request: self._serve(MESSAGES, self.messages, request),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI; a call whose client hangs up is cancelled."""
        await until_disconnect(super().__call__, scope, receive, send)

    async def _serve(self, dialect: Dialect, ask: Ask, request: Request) -> Answer:
        cookie = self._cookie.keep(request.cookie(self._cookie.name))
        call = ModelCall(dialect.name, rollout=request.rollout, training=request.training, session=cookie)
        if (session_id := request.header(b"x-session-id")) and _SESSION_ID.fullmatch(session_id):
            call.client_session_id = session_id
        try:
            admitted = dialect.admit(request.json_object())
        except (Refused, WireError) as error:
            answer = (await self._failed(error, request, call)).answer
        else:
            call.dropped += admitted.dropped
            call.streamed = admitted.stream
            work = self._complete(dialect, ask, admitted, request, call)
            answer = await self._streamed(dialect, admitted, work) if admitted.stream else (await work).answer
        answer.headers.append((b"set-cookie", self._cookie.line(cookie)))
        return answer

    async def _complete(
        self, dialect: Dialect, ask: Ask, admitted: Admitted, request: Request, call: ModelCall
    ) -> _Outcome:
        """Ask the model and record the call."""
        try:
            reply = await ask(admitted.params, call)
        except asyncio.CancelledError:
            call.error_category = "cancelled"
            await self._record(request, call, None, b"")
            raise
        except Exception as error:  # noqa: BLE001 - a server answers; it does not die of one request
            return await self._failed(error, request, call)
        reply = _with_tokens(dialect, reply, call)
        if call.training and call.tokens is not None:
            call.tokens = _recorded(call, admitted.params, reply)
        answer = json_answer(reply)
        await self._record(request, call, 200, _honest(dialect, reply, call) or _body(answer))
        self._report(dialect, call)
        return _Outcome(reply, answer)

    async def _failed(self, error: Exception, request: Request, call: ModelCall) -> _Outcome:
        answer = self._error(request, error)
        if call.error_category is None:
            expected = isinstance(error, Refused | WireError)
            call.error_category = category_of(answer.status) if expected else "exception"
        if isinstance(error, ModelFailed):
            call.error_category = error.category
        await self._record(request, call, answer.status, _body(answer))
        told = codec.loads(_body(answer))["error"]
        return _Outcome(None, answer, told["message"], told["code"])

    async def _streamed(self, dialect: Dialect, admitted: Admitted, work: Coroutine[Any, Any, _Outcome]) -> Answer:
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait([task], timeout=self.patience)
            if task.done() and task.result().reply is None:
                return task.result().answer
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        return Answer(self._events(dialect, admitted, task), headers=list(_EVENTS))

    async def _events(
        self, dialect: Dialect, admitted: Admitted, task: asyncio.Future[_Outcome]
    ) -> AsyncIterator[bytes]:
        try:
            while not task.done():
                await asyncio.wait([task], timeout=self.heartbeat)
                if not task.done():
                    yield KEEP_ALIVE
            outcome = task.result()
            if outcome.reply is None:
                yield dialect.failure(outcome.message, outcome.kind)
            else:
                yield b"".join(dialect.events(outcome.reply, admitted))
        finally:
            task.cancel()

    async def _record(self, request: Request, call: ModelCall, status: int | None, response: bytes) -> None:
        if self.capture is not None and call.rollout is not None:
            await self.capture.append(record_of(call, self.name, status, request.body, response))

    def _report(self, dialect: Dialect, call: ModelCall) -> None:
        """Log what conversions dropped, once for each kind: a run has thousands of calls of one shape."""
        for drop in call.dropped:
            if (dialect.name, drop.kind) not in self._reported:
                self._reported.add((dialect.name, drop.kind))
                log.warning("%s: a %s call lost %s: %s", self.name, dialect.name, drop.kind, drop.reason)

    def _error(self, request: Request, error: Exception) -> Answer:
        """An error as our servers and as the client libraries of both providers read it."""
        answer = super()._error(request, error)
        body = codec.loads(_body(answer))
        detail = body["detail"]
        message = detail if isinstance(detail, str) else "; ".join(map(str, detail))
        kind = _ERROR_TYPES.get(answer.status, "api_error" if answer.status >= 500 else "invalid_request_error")
        headers = {}
        if isinstance(error, ModelFailed):
            if error.final:
                headers[b"x-should-retry"] = b"false"
            if error.retry_after is not None:
                headers[b"retry-after"] = b"%g" % error.retry_after
        told = {"type": kind, "message": message, "code": body["kind"]}
        return json_answer({"type": "error", "error": told, **body}, answer.status, headers)


def _body(answer: Answer) -> bytes:
    assert isinstance(answer.body, bytes), "an answer in JSON is whole"
    return answer.body


def _not_failed(response: dict[str, Any]) -> dict[str, Any]:
    """The response, unless it says that it failed: the other dialects have an HTTP error for that."""
    if response.get("status") not in ("failed", "cancelled"):
        return response
    error = response.get("error") or {}
    message = f"the model's response is {response['status']}: {error.get('message') or 'no reason given'}"
    raise ModelFailed(502, message, kind=str(error.get("code") or "response_failed"))


def _with_tokens(dialect: Dialect, reply: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    """The reply with its token fields where it has a place for them; otherwise the record keeps them."""
    tokens = call.tokens
    if tokens is None or call.training:
        return reply
    if dialect is RESPONSES and reply["output"]:
        call.tokens = None
        *items, last = reply["output"]
        return {**reply, "output": [*items, {**last, **tokens}]}
    if dialect is CHAT:
        call.tokens = None
        first, *rest = reply["choices"]
        return {**reply, "choices": [{**first, "message": {**first["message"], **tokens}}, *rest]}
    return reply


def _recorded(call: ModelCall, params: Params, reply: dict[str, Any]) -> dict[str, Any] | None:
    """What is recorded for training; None for a conversation that cannot be told, whose client has its reply."""
    try:
        return token_record(call, params, reply)
    except Exception as error:  # noqa: BLE001 - the rollout is then masked, with the reason
        log.warning("rollout %s: the tokens of a %s call cannot be recorded: %r", call.rollout, call.dialect, error)
        return None


def _honest(dialect: Dialect, reply: dict[str, Any], call: ModelCall) -> bytes | None:
    """What to record in place of a reply that holds zeros because Messages wants numbers; None for any other."""
    if dialect is MESSAGES and any(drop.path == "usage" for drop in call.dropped):
        return codec.dumps({**reply, "usage": None})
    return None
