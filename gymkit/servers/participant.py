"""The servers that take part in an episode, as its protocol sees them: a room with tools, and the players in it.

Each is opened with a name that is chosen here and closed at the episode's end, whatever happens in between, so that
a reply that was lost is no session that was lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self
from uuid import uuid4

from gymkit.errors import InvalidReply, WireError
from gymkit.servers.episode import Episode
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.wire.agent_sessions import DirectHttp, Mcp, McpConnection, ToolAccess
from gymkit.wire.responses import check_response

ATTEMPTS = 3
"""How often a connection is tried."""

_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class Room:
    """A session of a resources server. Make one with ``await Room.open(...)``."""

    def __init__(self, route: Route, episode: Episode[Any]) -> None:
        self.route = route
        self.handle = f"resources-session-{uuid4().hex}"
        self.jar = CookieJar()
        self.seeded: dict[str, Any] = {}
        """What the seed was answered with; may hold ``resources_tools`` and ``sandbox_access``."""
        self._episode = episode
        self.closing = episode.at_end("resources session", self._close)

    @classmethod
    async def open(cls, route: Route, episode: Episode[Any], task_data: Mapping[str, Any]) -> Self:
        """Seed a session for the task's fields ``task_data``. Raises ServerError."""
        room = cls(route, episode)
        names = {"episode_id": episode.id.model_dump(), "task_id": episode.task_id.model_dump()}
        body = {"resources_session_id": room.handle, **names, "task_data": task_data}
        reply = (await room._post("/seed_session", body)).expect_ok()
        room.seeded = reply.json_object()
        room.jar.take(reply)
        if not room.jar:
            raise _invalid(reply, "set no session cookie")
        _same(reply, room.seeded, "resources_session_id", room.handle)
        return room

    def direct_http(self) -> DirectHttp:
        """Access to its tools over plain routes."""
        return DirectHttp(
            name=f"{_named(self.route.name)}.direct_http",
            required=True,
            base_url=self.route.url,
            cookies=dict(self.jar),
        )

    def mcp(self) -> Mcp:
        """Access to its tools over MCP. Raises ValueError when it offers none."""
        offered = self.seeded.get("resources_tools")
        if not isinstance(offered, Mapping):
            raise ValueError(f"{self.route.name} offers no tools over MCP (expose_tools_over_mcp)")
        if offered.get("transport") != "http":
            raise ValueError(f"{self.route.name} offers MCP over {offered.get('transport')!r}, and only http is known")
        url = f"{self.route.url}/{str(offered['url_path']).lstrip('/')}"
        connection = McpConnection(url=url, headers=offered.get("headers") or {})
        return Mcp(name=offered["server_name"], required=True, connection=connection)

    async def verify(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The verifier's reply on the task's fields with ``responses_create_params`` and ``response``."""
        reply = (await self._post("/verify", body)).expect_ok()
        verified = reply.json_object()
        if isinstance(reward := verified.get("reward"), bool) or not isinstance(reward, int | float):
            raise _invalid(reply, "gave no reward")
        return verified

    async def _close(self) -> None:
        body = {"resources_session_id": self.handle, "episode_id": self._episode.id.model_dump()}
        (await self._post("/close_session", body)).expect_ok()

    async def _post(self, path: str, body: Mapping[str, Any]) -> Reply:
        return await self.route.post(self._episode.path(path), body, cookies=self.jar, attempts=ATTEMPTS)


class Player:
    """A session of an agent server. Make one with ``await Player.open(...)``."""

    def __init__(self, route: Route, episode: Episode[Any]) -> None:
        self.route = route
        self.handle = f"agent-session-{uuid4().hex}"
        self.jar = CookieJar()
        self.receipt: dict[str, Any] = {}
        """What the close was answered with: ``agent_observations``, ``resources_cookies``."""
        self._episode = episode
        self.closing = episode.at_end("agent session", self._close)

    @classmethod
    async def open(
        cls,
        route: Route,
        episode: Episode[Any],
        tool_accesses: Iterable[ToolAccess] = (),
        sandbox_access: Mapping[str, Any] | None = None,
    ) -> Self:
        """Seed a session with access to tools. Raises ServerError."""
        player = cls(route, episode)
        body: dict[str, Any] = {
            "agent_session_id": player.handle,
            "episode_id": episode.id.model_dump(),
            "task_id": episode.task_id.model_dump(),
            "tool_accesses": [access.model_dump() for access in tool_accesses],
        }
        if sandbox_access is not None:
            body["sandbox_access"] = sandbox_access
        reply = (await player._post("/v1/agent_sessions", body)).expect_ok()
        _same(reply, reply.json_object(), "agent_session_id", player.handle)
        player.jar.take(reply)
        return player

    async def respond(self, params: Mapping[str, Any], *, training: bool = False) -> dict[str, Any]:
        """One turn: a checked response with everything that the agent did. Raises ServerError."""
        reply = await self._post(self._episode.path("/v1/responses", training=training), params)
        response = reply.expect_ok().json()
        try:
            check_response(response)
        except WireError as error:
            raise _invalid(reply, f"is no Responses API response: {'; '.join(error.problems)}") from error
        self.jar.take(reply)
        return response  # type: ignore[no-any-return]

    async def close(self) -> dict[str, Any]:
        """End the session now: the receipt. Raises ServerError."""
        await self.closing.now()
        return self.receipt

    async def _close(self) -> None:
        body = {"agent_session_id": self.handle, "episode_id": self._episode.id.model_dump()}
        reply = (await self._post("/v1/agent_sessions/close", body)).expect_ok()
        receipt = reply.json_object()
        _same(reply, receipt, "agent_session_id", self.handle)
        self.receipt = receipt

    async def _post(self, path: str, body: Mapping[str, Any]) -> Reply:
        return await self.route.post(path, body, cookies=self.jar, attempts=ATTEMPTS)


def _same(reply: Reply, body: Mapping[str, Any], key: str, expected: str) -> None:
    if body.get(key) != expected:
        raise _invalid(reply, f"has {key} {body.get(key)!r:.80}, not the session's, {expected!r}")


def _invalid(reply: Reply, problem: str) -> InvalidReply:
    return InvalidReply(f"the answer of {reply.url} {problem}", server=reply.server, url=reply.url)


def _named(name: str) -> str:
    return _NO_NAME.sub("-", name).strip("-._") or "resources"
