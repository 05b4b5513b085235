"""One rollout's stay in its environment: seeded once, tools called in it, verified at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from typing import Any

from gymkit.agents.failure import RolloutFailed
from gymkit.agents.trace import Trace
from gymkit.errors import ServerError
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.servers.tool import is_tool_name, unknown_tool
from gymkit.wire import codec

CONNECT_ATTEMPTS = 3
"""How often a connection is tried."""


class Tenancy:
    """A session of the environment behind ``route``, held by the cookies in ``jar``."""

    def __init__(
        self, route: Route, cookies: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.route = route
        self.jar = CookieJar(cookies or {})
        self._headers = headers

    async def seed(self, row: Mapping[str, Any]) -> None:
        """Begin a rollout of the task ``row``. Raises RolloutFailed."""
        try:
            self.jar.take((await self._post("/seed_session", row)).expect_ok())
        except ServerError as error:
            raise RolloutFailed(f"seeding failed: {error}", kind="seed") from error

    async def execute(self, call: Mapping[str, Any], declared: Collection[Any], trace: Trace) -> None:
        """Run the ``function_call`` item ``call`` and append its output to ``trace``, an error's text included.

        ``declared`` are the tools that the agent was told of. Raises ServerError when the environment cannot be
        reached: that is no answer for an agent to read.
        """
        name, error = call["name"], None
        started = time.perf_counter()
        arguments = _arguments(call["arguments"])
        if not is_tool_name(name):
            error, output = "undeclared", codec.dumps({"detail": unknown_tool(name), "kind": "unknown_tool"}).decode()
        elif isinstance(arguments, ValueError):
            error, output = "malformed", codec.dumps({"error": f"Invalid tool call arguments: {arguments}"}).decode()
        else:
            reply = await self._post(f"/{name}", arguments)
            self.jar.take(reply)
            output = reply.text
            error = "undeclared" if name not in declared else "failed" if reply.status >= 300 else None
        trace.executed(call["call_id"], output, error, time.perf_counter() - started)

    async def verify(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The verdict on the finished trajectory in ``body``. Raises RolloutFailed."""
        try:
            reply = (await self._post("/verify", body)).expect_ok()
            verified = reply.json_object()
        except ServerError as error:
            raise RolloutFailed(f"verification failed: {error}", kind="verify") from error
        reward = verified.get("reward")
        if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
            raise RolloutFailed(f"verification failed: {reply.url} answered without a finite reward", kind="verify")
        return verified

    async def _post(self, path: str, payload: Mapping[str, Any]) -> Reply:
        return await self.route.post(path, payload, cookies=self.jar, headers=self._headers, attempts=CONNECT_ATTEMPTS)


def _arguments(text: str) -> dict[str, Any] | ValueError:
    try:
        arguments = codec.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        return error
    return arguments if isinstance(arguments, dict) else ValueError("they must be a JSON object")
