"""From a configuration and the settings of a run to where its rows go: by agent, to one server, or by task set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, model_validator

from gymkit.collect.checks import fields_of
from gymkit.collect.routing import ByTaskset, Target
from gymkit.config import Config, ServerInstance
from gymkit.environments.single_agent_turn import SingleAgentTurn
from gymkit.errors import ConfigError
from gymkit.resources import ALIASES, SHIPPED, load
from gymkit.sdk import usersim_configured
from gymkit.sdk.catalogue import AGENTS, ENVIRONMENTS, RESOURCES
from gymkit.usersim.task import UserSimTask

EPISODES_ONLY = frozenset({SingleAgentTurn.implementation, "nemo_user_sim"})
"""Environment servers that take no flat rows."""


class RoutingSettings(BaseModel):
    """Which environment server runs a row, by NeMo Gym's names."""

    agent_name: str | None = None
    """The agent to run; by default the only one there is."""
    environment_routing_mode: Literal["agent", "legacy", "taskset"] = "agent"
    """Where flat rows go: to the agent's environment server, to ``environment_server_name``, or nowhere."""
    environment_server_name: str | None = None
    """The environment server of the mode ``legacy``."""
    environment_server_routes: dict[str, str] = {}
    """Task set to environment server, for rows in materialized form, in every mode."""

    @model_validator(mode="after")
    def _complete(self) -> RoutingSettings:
        if self.environment_routing_mode == "legacy" and self.environment_server_name is None:
            raise ValueError("environment_server_name is needed with environment_routing_mode=legacy")
        if self.environment_routing_mode == "taskset" and not self.environment_server_routes:
            raise ValueError("environment_server_routes are needed with environment_routing_mode=taskset")
        return self


def routing_of(config: Config, settings: RoutingSettings) -> ByTaskset:
    """Where the rows of a run go. Raises ConfigError with the names for a server that is not there."""
    routes = {
        taskset: target_of(config, config.server(name, ENVIRONMENTS), agent=None)
        for taskset, name in settings.environment_server_routes.items()
    }
    return ByTaskset(routes, _flat(config, settings))


def target_of(config: Config, front: ServerInstance, *, agent: str | None) -> Target:
    """The environment server ``front`` as a target; ``agent`` is stamped on its rows."""
    check = _check_task(config, front)
    return Target(agent, front.name, front.implementation, check, front.implementation not in EPISODES_ONLY)


def agent_named(config: Config, name: str | None) -> ServerInstance:
    """The agent called ``name``, or the only one there is. Raises ConfigError with the names."""
    if name is not None:
        return config.server(name, AGENTS)
    agents = config.of_type(AGENTS)
    if len(agents) != 1:
        names = ", ".join(agent.name for agent in agents) or "none"
        raise ConfigError(f"which agent? the configuration has {names}: give --agent NAME")
    return agents[0]


def resources_of(config: Config, front: ServerInstance) -> ServerInstance | None:
    """The resources server behind an environment server: its own, or its agent's."""
    holders = [front, *(config.server(name, AGENTS) for name in front.agents)]
    references = (holder.references.get("resources_server") for holder in holders)
    return next((config.server(each.name, RESOURCES) for each in references if each), None)


def _flat(config: Config, settings: RoutingSettings) -> Target | None:
    match settings.environment_routing_mode:
        case "taskset":
            return None
        case "legacy":
            assert settings.environment_server_name is not None
            front = config.server(settings.environment_server_name, ENVIRONMENTS)
            return target_of(config, front, agent=next(iter(front.agents), None))
    if settings.agent_name is None and settings.environment_server_routes and len(config.of_type(AGENTS)) != 1:
        return None  # which agent flat rows are for, only a run that has some needs to know
    agent = agent_named(config, settings.agent_name)
    if settings.agent_name is None and settings.environment_server_routes and not _fronted_once(config, agent):
        return None
    return target_of(config, config.environment_server_of(agent.name), agent=agent.name)


def _fronted_once(config: Config, agent: ServerInstance) -> bool:
    return sum(agent.name in front.agents for front in config.of_type(ENVIRONMENTS)) == 1


def _check_task(config: Config, front: ServerInstance) -> Callable[[Mapping[str, Any]], list[str]] | None:
    """What the environment misses in a row; None for an environment that we do not ship."""
    if front.implementation == usersim_configured.NAME:
        return fields_of(UserSimTask)
    server = resources_of(config, front)
    name = server.implementation if server else ""
    return load(name).check_task if name in SHIPPED or name in ALIASES else None
