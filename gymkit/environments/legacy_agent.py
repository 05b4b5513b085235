"""``legacy_agent``: the environment server of an agent that owns its whole episode.

It relays ``/run`` byte for byte (body, headers, cookies, status) and knows no episode protocol. A collector always
talks to an environment server, and this one makes an agent into one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from gymkit.errors import CallTimeout
from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.http import Answer, Headers, Request
from gymkit.servers.route import Route

RELAY_TIMEOUT = 21_600.0
"""Seconds after which a relayed call is given up; the agent's own bounds are meant to end it long before."""

_HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer"),
        *(b"transfer-encoding", b"upgrade", b"host", b"content-length"),
    }
)


class LegacyAgent(ServerApp):
    """The relay to one agent server."""

    server_type = "environment_servers"
    implementation = "legacy_agent"
    cut_short = frozenset({"POST /run"})

    def __init__(self, name: str, agent: Route) -> None:
        super().__init__(name)
        self.agent = agent

    def handlers(self) -> Mapping[str, Handler]:
        """The agent's two routes."""
        return {"POST /run": self._relay, "POST /aggregate_metrics": self._relay}

    async def _relay(self, request: Request) -> Answer:
        path = request.path
        try:
            async with asyncio.timeout(RELAY_TIMEOUT):
                reply = await self.agent.send("POST", path, _end_to_end(request.headers), request.body)
        except TimeoutError as error:
            message = f"{self.agent.name} did not answer {path} within {RELAY_TIMEOUT:g} s"
            raise CallTimeout(message, server=self.agent.name, url=self.agent.url + path) from error
        return Answer(reply.body, reply.status, _end_to_end(reply.headers))

    async def aclose(self) -> None:
        """Let go of the connections to the agent."""
        await self.agent.aclose()


def _end_to_end(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name not in _HOP_BY_HOP]
