"""Routes that stand between the real agent server and its two neighbours, to see and to disturb what passes.

Toward the service, each call is kept, and the first tool call of a rollout may be bent on its way back: the agent
server then meets an unknown tool or malformed arguments and answers the service as it does in a run. Toward the
environment, nothing is kept; the first tool call of a rollout may fail.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from gymkit.errors import ServerError
from gymkit.sdk.check.exchange import Exchange
from gymkit.sdk.check.played import Played
from gymkit.servers.http import Headers
from gymkit.servers.route import Reply, Route
from gymkit.servers.tool import RESERVED
from gymkit.wire import codec
from gymkit.wire.responses import unpaired_calls

playing: ContextVar[Played | None] = ContextVar("playing", default=None)
"""The rollout that the running task belongs to."""

UNKNOWN_TOOL = "a_tool_that_does_not_exist"


class Recorder(Route):
    """The way to the service. Each call is bounded by ``timeout`` seconds and kept with its rollout."""

    def __init__(self, service: Route, timeout: float) -> None:
        super().__init__(service.name, service.url)
        self.calls = 0
        self._service = service
        self._timeout = timeout
        self._attempts = 1

    async def post(
        self,
        path: str,
        payload: Any = None,
        *,
        cookies: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        knob: str = "timeout",
        attempts: int = 1,
    ) -> Reply:
        """Pass a call of the agent server on, keep it, and hand the answer back as the rollout's disturbance has it."""
        self._attempts = attempts
        exchange = await self.exchange(path, payload, cookies or {})
        played = playing.get()
        if played is not None:
            played.exchanges.append(exchange)
        if exchange.reply is None:
            assert exchange.error is not None
            raise exchange.error
        if exchange.response is None:
            return exchange.reply
        return exchange.reply._replace(body=codec.dumps(_bent(exchange.response, played)))

    async def exchange(self, path: str, payload: dict[str, Any], cookies: Mapping[str, str]) -> Exchange:
        """One call, whatever comes of it, with as many attempts to connect as the agent server makes."""
        sent = dict(cookies)  # the caller's jar goes on changing
        self.calls += 1
        started = time.perf_counter()
        try:
            reply = await self._service.post(
                path, payload, cookies=sent, timeout=self._timeout, attempts=self._attempts
            )
        except ServerError as error:
            return Exchange(payload, sent, time.perf_counter() - started, error=error)
        return Exchange.answered(payload, sent, time.perf_counter() - started, reply)

    async def send(self, method: str, path: str, headers: Headers, body: bytes) -> Reply:
        """Pass on as it is."""
        return await self._service.send(method, path, headers, body)

    async def aclose(self) -> None:
        """Let go of the service's connections."""
        await self._service.aclose()


class Meddler(Route):
    """The way to the environment, on which a tool may fail."""

    def __init__(self, environment: Route) -> None:
        super().__init__(environment.name, environment.url)
        self._environment = environment

    async def post(self, path: str, *args: Any, **options: Any) -> Reply:
        """Pass on, except for the tool call that is to fail."""
        played = playing.get()
        if played and _is_due(played, "failing tool") and path.removeprefix("/") not in RESERVED:
            played.disturbed_at = len(played.exchanges) - 1
            return Reply(self.name, self.url + path, 500, [], b"Internal Server Error")
        return await self._environment.post(path, *args, **options)

    async def send(self, method: str, path: str, headers: Headers, body: bytes) -> Reply:
        """Pass on as it is."""
        return await self._environment.send(method, path, headers, body)

    async def aclose(self) -> None:
        """Let go of the environment's connections."""
        await self._environment.aclose()


def _is_due(played: Played, disturbance: str) -> bool:
    return played.disturbance == disturbance and played.disturbed_at is None


def _bent(response: dict[str, Any], played: Played | None) -> dict[str, Any]:
    """The response with its first ask spoilt, where that is what the rollout is for."""
    asks = unpaired_calls(response["output"])
    if not asks or not played:
        return response
    if _is_due(played, "unknown tool"):
        spoilt = {**asks[0], "name": UNKNOWN_TOOL}
    elif _is_due(played, "malformed arguments"):
        spoilt = {**asks[0], "arguments": asks[0]["arguments"].rstrip()[:-1] or "{"}
    else:
        return response
    played.disturbed_at = len(played.exchanges) - 1
    return {**response, "output": [spoilt if item is asks[0] else item for item in response["output"]]}
