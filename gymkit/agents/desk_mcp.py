"""A rollout's tools over MCP, for programs that speak it: calls run in the rollout's session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymkit.agents.desk import Desk
from gymkit.servers.http import Request
from gymkit.servers.mcp import McpEndpoint, declared, told

PATH = "/mcp"


class DeskMcp(McpEndpoint):
    """The endpoint of one rollout; whoever knows its address may call, and nobody else knows it."""

    def __init__(self, desk: Desk) -> None:
        super().__init__("environment")
        self._desk = desk

    def declared(self, request: Request) -> list[dict[str, Any]]:
        """The tools that the task offers."""
        return [declared(tool) for tool in self._desk.tools]

    async def call_tool(self, request: Request, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool: what the environment said, an error's text included, as every agent reads it."""
        return told(await self._desk.call(name, dict(arguments)), is_error=False)
