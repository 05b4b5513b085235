"""From a configuration to its servers, and to a run of one of its agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gymkit.agents.remote import RemoteAgent, RemoteAgentConfig
from gymkit.collect.collector import ROLLOUT_TIMEOUT_SECS
from gymkit.collect.plan import Expansion, Target
from gymkit.config import Config, Implementation, Implementations, ServerInstance
from gymkit.environments.legacy_agent import LegacyAgent
from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.resources import ALIASES, SHIPPED, canonical, load
from gymkit.sdk.collection import Collection, patience
from gymkit.servers.app import ServerApp
from gymkit.servers.route import Route

AGENTS = "responses_api_agents"
RESOURCES = "resources_servers"
ENVIRONMENTS = "environment_servers"


class ResourcesConfig(BaseModel):
    """The resources servers we ship have no settings of their own."""

    model_config = ConfigDict(extra="forbid")


class RelayConfig(BaseModel):
    """Settings that every environment server of NeMo Gym has. A relay applies none: the agent has its own bounds."""

    model_config = ConfigDict(extra="forbid")

    max_concurrent_episodes: int | None = None
    """Not applied."""
    queue_timeout_seconds: float | None = None
    """Not applied."""
    default_episode_timeout_seconds: float | None = None
    """Not applied."""
    cleanup_timeout_seconds: float | None = None
    """Not applied."""


KNOWN: Implementations = {
    **{(RESOURCES, name): Implementation(ResourcesConfig) for name in (*SHIPPED, *ALIASES)},
    (AGENTS, RemoteAgent.implementation): Implementation(RemoteAgentConfig, {"resources_server": RESOURCES}),
    (ENVIRONMENTS, LegacyAgent.implementation): Implementation(RelayConfig, {"agent_server": AGENTS}),
}
"""Every implementation that we ship, for ``config.load``."""


def build(config: Config) -> dict[str, ServerApp]:
    """The servers of ``config`` (loaded with ``KNOWN``) as apps by name; they call each other in this process.

    Raises ConfigError for an implementation that we do not ship.
    """
    apps: dict[str, ServerApp] = {}
    for server_type in (RESOURCES, AGENTS, ENVIRONMENTS):
        for server in config.of_type(server_type):
            routes = {key: Route.to_app(ref.name, apps[ref.name]) for key, ref in server.references.items()}
            apps[server.name] = _app(server, routes)
    for server in config.servers.values():
        if server.name not in apps:
            raise _unknown(server)
    return apps


def run_of(
    config: Config,
    agent: ServerInstance,
    *,
    apps: Mapping[str, ServerApp] | None,
    tasks: Path,
    output: Path,
    expansion: Expansion,
    concurrency: int | None = None,
    resume: bool = False,
    aggregate: bool = True,
    require_complete: bool = False,
) -> Collection:
    """The run of ``agent`` over ``tasks``, not begun.

    ``apps`` are the servers in this process (``build``); None reaches those that run already at their URLs.
    The other parameters are those of ``Collection``; ``concurrency`` is by default what the agent allows.
    """
    front = config.environment_server_of(agent.name)
    route = Route.to_url(front.name, front.url) if apps is None else Route.to_app(front.name, apps[front.name])
    resources = agent.references.get("resources_server")
    environment = config.server(resources.name, RESOURCES).implementation if resources else ""
    ours = environment in SHIPPED or environment in ALIASES
    bounds = _remote_config(agent)
    in_flight = concurrency or (bounds.concurrency if bounds else 32)
    return Collection(
        tasks=tasks,
        target=Target(agent.name, front.name, front.implementation),
        route=route,
        output=output,
        settings={
            "environment": canonical(environment) if ours else environment,
            "agent": _identity(agent, bounds),
        },
        expansion=expansion,
        check_task=load(environment).check_task if ours else None,
        concurrency=in_flight,
        rollout_timeout=patience(bounds.run_timeout_secs, in_flight, bounds.concurrency)
        if bounds
        else ROLLOUT_TIMEOUT_SECS,
        resume=resume,
        aggregate=aggregate,
        require_complete=require_complete,
        closing=() if apps is None else tuple(apps.values()),
    )


def agent_named(config: Config, name: str | None) -> ServerInstance:
    """The agent called ``name``, or the only one there is. Raises ConfigError with the names."""
    if name is not None:
        return config.server(name, AGENTS)
    agents = config.of_type(AGENTS)
    if len(agents) != 1:
        names = ", ".join(agent.name for agent in agents) or "none"
        raise ConfigError(f"which agent? the configuration has {names}: give --agent NAME")
    return agents[0]


def _app(server: ServerInstance, routes: Mapping[str, Route]) -> ServerApp:
    match server.server_type, server.implementation:
        case ("resources_servers", name) if name in SHIPPED or name in ALIASES:
            return load(name)(server.name)
        case ("responses_api_agents", RemoteAgent.implementation):
            assert isinstance(server.config, RemoteAgentConfig)
            return RemoteAgent(server.name, server.config, routes["resources_server"])
        case ("environment_servers", LegacyAgent.implementation):
            return LegacyAgent(server.name, routes["agent_server"])
    raise _unknown(server)


def _unknown(server: ServerInstance) -> ConfigError:
    there = [name for server_type, name in KNOWN if server_type == server.server_type]
    kind, name = server.server_type, server.implementation
    return ConfigError(f"{server.name}: gymkit has no {name} among its {kind}; {nearest(name, there)}")


def _remote_config(agent: ServerInstance) -> RemoteAgentConfig | None:
    """The bounds of a remote agent, as published by its discovery endpoint or loaded; None for other agents."""
    if isinstance(agent.config, RemoteAgentConfig) or agent.implementation != RemoteAgent.implementation:
        return agent.config if isinstance(agent.config, RemoteAgentConfig) else None
    try:
        return RemoteAgentConfig.model_validate(agent.settings)
    except ValidationError:
        return None  # a neighbour's remote agent with settings of its own


def _identity(agent: ServerInstance, bounds: RemoteAgentConfig | None) -> dict[str, Any]:
    """What results depend on: the same as ``sdk.RemoteAgent.settings``, so that either can resume the other's run."""
    settings = agent.settings if bounds is None else bounds.model_dump(exclude={"concurrency"})
    return {"type": agent.implementation, **settings}
