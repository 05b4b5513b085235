"""A scripted agent service: answers ``POST /v1/responses`` as a Python function says, faults included.

::

    def brain(params):                       # the request, as the service receives it
        if not outputs(params):
            return [call("increment_counter", count=2)]
        return [answer("done")]

    service = ScriptedAgent(brain)
    with serve(service) as hosted:           # gymkit.servers.hosting
        gymkit.RemoteAgent(hosted.url)

``service.received`` holds every request. A brain may also return a ``Fault``, a whole response object, or bytes.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gymkit.servers.fault import Fault as Fault
from gymkit.servers.http import Answer, Receive, Scope, Send, json_answer, read_request
from gymkit.wire import codec

Brain = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Received:
    """One request that the service got."""

    path: str
    """Its path."""
    params: dict[str, Any]
    """Its body."""
    cookies: dict[str, str]
    """Its cookies."""
    headers: dict[str, str]
    """Its headers, names in lower case."""


class ScriptedAgent:
    """The service, an ASGI app. ``set_cookie`` is sent along with every answer."""

    def __init__(self, brain: Brain, *, set_cookie: Callable[[Received], str | None] | None = None) -> None:
        self.received: list[Received] = []
        self._brain = brain
        self._set_cookie = set_cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        request = await read_request(scope, receive, scope["path"])
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        pairs = (pair.partition("=") for pair in headers.get("cookie", "").split("; ") if pair)
        received = Received(request.path, request.json(), {name: value for name, _, value in pairs}, headers)
        self.received.append(received)
        reply = self._brain(received.params)
        answer = await _answered(await reply if inspect.isawaitable(reply) else reply)
        if self._set_cookie and (line := self._set_cookie(received)):
            answer.headers.append((b"set-cookie", line.encode()))
        await answer(send)


async def _answered(reply: Any) -> Answer:
    if isinstance(reply, Fault):
        await asyncio.sleep(reply.seconds)
        return Answer(
            reply.body, reply.status, [(key.encode(), value.encode()) for key, value in reply.headers.items()]
        )
    if isinstance(reply, bytes):
        return Answer(reply, headers=[(b"content-type", b"application/json")])
    return json_answer(reply if isinstance(reply, dict) else respond(reply))


def respond(output: list[dict[str, Any]], *, usage: bool = True, **fields: Any) -> dict[str, Any]:
    """A valid Responses API object with ``output``, one made-up token in and out; ``fields`` are laid over it."""
    response = {
        "id": "resp_scripted",
        "created_at": 0.0,
        "model": "scripted",
        "object": "response",
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    if usage:
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        response["usage"] = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
    return {**response, **fields}


def call(name: str, call_id: str = "call_0", **arguments: Any) -> dict[str, Any]:
    """A ``function_call`` item that asks for a tool."""
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": codec.dumps(arguments).decode(),
    }


def answer(text: str) -> dict[str, Any]:
    """An assistant's message item."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": content}


def outputs(params: Mapping[str, Any]) -> list[str]:
    """The tool outputs in a request so far, in order."""
    return [item["output"] for item in params["input"] if item.get("type") == "function_call_output"]
