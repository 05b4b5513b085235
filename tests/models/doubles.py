"""Services on loopback to put a model server in front of, and the server asked over its routes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gymkit.servers.hosting import serve
from gymkit.servers.model import ModelServer
from gymkit.servers.route import Reply, Route
from gymkit.testing.agent import ScriptedAgent

Json = dict[str, Any]
SECRET = "sk-very-secret-key"
HELLO = [{"role": "user", "content": "hello"}]


@contextmanager
def service(*replies: Any) -> Iterator[tuple[str, ScriptedAgent]]:
    """A service that gives ``replies`` in order, the last one for ever, and what it received."""
    left = list(replies)
    double = ScriptedAgent(lambda _: left.pop(0) if len(left) > 1 else left[0])
    with serve(double) as hosted:
        yield f"{hosted.url}/v1", double


def ask(server: ModelServer, path: str, body: Any) -> Reply:
    async def scenario() -> Reply:
        try:
            return await Route.to_app(server.name, server).post(path, body)
        finally:
            await server.aclose()

    return asyncio.run(scenario())


def completion(message: Json | None = None, finish: str = "stop", choice: Json | None = None, **more: Any) -> Json:
    said = {"role": "assistant", "content": "hi", **(message or {})}
    choices = [{"index": 0, "finish_reason": finish, "message": said, **(choice or {})}]
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    frame = {"id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "upstream", "usage": usage}
    return {**frame, "choices": choices, **more}
