"""A run in which an environment server plays the episodes: ``single_agent_turn``, or a protocol of your own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gymkit.environments.legacy_agent import LegacyAgent
from gymkit.environments.single_agent_turn import SingleAgentTurn, SingleAgentTurnConfig
from gymkit.servers.agent import AgentServer
from gymkit.servers.app import ServerApp
from gymkit.servers.route import Route
from gymkit.wire.names import relay_name
from gymkit.wire.tasks import is_materialized, materialized

Protocol = type[SingleAgentTurn]
"""A class with ``play``: SingleAgentTurn itself, or one of yours that inherits its room and its agent."""


def front_of(
    protocol: Protocol | None, server: AgentServer[Any], resources: Route, run_timeout: float
) -> LegacyAgent | SingleAgentTurn:
    """The environment server in front of an agent: the relay to its ``/run``, or one that plays ``protocol``."""
    name = relay_name(server.name, server.implementation)
    agent = Route.to_app(server.name, server)
    if protocol is None:
        return LegacyAgent(name, agent)
    config = SingleAgentTurnConfig(
        resources_tool_transports=("direct_http",), default_episode_timeout_seconds=run_timeout
    )
    return protocol(name, config, resources, agent)


def episodes(rows: Iterable[Mapping[str, Any]], taskset: str) -> list[dict[str, Any]]:
    """Task rows in the form of episodes; those that have it already stay as they are."""
    return [
        dict(row) if is_materialized(row) else materialized({**row, "_ng_task_index": index}, taskset).model_dump()
        for index, row in enumerate(rows)
    ]


def settings_of(front: ServerApp) -> dict[str, Any]:
    """What results depend on besides the agent: nothing for the relay."""
    if isinstance(front, LegacyAgent):
        return {}
    return {"protocol": {"type": front.implementation, "class": type(front).__qualname__}}
