"""An agent server: it takes one task row on ``/run`` and answers with the verified rollout."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.http import Request
from gymkit.servers.route import Route

AGGREGATE_TIMEOUT = 600.0
"""Seconds that the resources server may take to aggregate a run."""


class AgentServer(ServerApp):
    """Base of every agent server. ``resources`` is the environment that seeds, serves tools and verifies."""

    server_type = "responses_api_agents"

    def __init__(self, name: str, resources: Route) -> None:
        super().__init__(name)
        self.resources = resources

    @abstractmethod
    async def run(self, row: dict[str, Any]) -> dict[str, Any]:
        """Do one rollout of the task ``row``: the verify reply, or a failure row (``_ng_failure_class``)."""

    def handlers(self) -> Mapping[str, Handler]:
        """One rollout, and the run's metrics, which the resources server computes."""
        return {"POST /run": self._run, "POST /aggregate_metrics": self._aggregate_metrics}

    async def _run(self, request: Request) -> dict[str, Any]:
        return await self.run(request.json_object())

    async def _aggregate_metrics(self, request: Request) -> Any:
        body = request.json()
        reply = await self.resources.post("/aggregate_metrics", body, timeout=AGGREGATE_TIMEOUT)
        return reply.expect_ok().json()

    async def aclose(self) -> None:
        """Let go of the connections to the resources server."""
        await self.resources.aclose()
