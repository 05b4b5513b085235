"""Every implementation that we ship, as a configuration names it: what it may be set to, and the server it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gymkit import models
from gymkit.agents.harness import HarnessAgent
from gymkit.agents.remote import RemoteAgent, RemoteAgentConfig
from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.config import Implementation, ServerInstance
from gymkit.environments.legacy_agent import LegacyAgent
from gymkit.environments.single_agent_turn import SingleAgentTurn, SingleAgentTurnConfig
from gymkit.environments.single_agent_turn_legacy import SingleAgentTurnLegacy
from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.resources import ALIASES, SHIPPED, load
from gymkit.sdk import harness_configured, package, usersim_configured
from gymkit.servers.agent import AgentServer
from gymkit.servers.app import ServerApp
from gymkit.servers.capture import Capture
from gymkit.servers.route import Route
from gymkit.wire.problems import sentences

AGENTS = "responses_api_agents"
RESOURCES = "resources_servers"
MODELS = "responses_api_models"
ENVIRONMENTS = "environment_servers"

Key = tuple[str, str]
"""Server type and implementation."""


class ResourcesConfig(BaseModel):
    """Settings of the resources servers we ship."""

    model_config = ConfigDict(extra="forbid")

    expose_tools_over_mcp: bool = False
    """Whether the tools can be called over ``/mcp`` as well."""


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


_TURN = Implementation(SingleAgentTurnConfig, {"resources_server": RESOURCES, "agent_server": AGENTS})
_SETTLED: Mapping[Key, Implementation] = {
    **{(RESOURCES, name): Implementation(ResourcesConfig) for name in (*SHIPPED, *ALIASES)},
    (AGENTS, RemoteAgent.implementation): Implementation(RemoteAgentConfig, {"resources_server": RESOURCES}),
    (AGENTS, SimpleAgent.implementation): Implementation(
        SimpleAgentConfig, {"model_server": MODELS}, {"resources_server": RESOURCES}
    ),
    (ENVIRONMENTS, LegacyAgent.implementation): Implementation(RelayConfig, {"agent_server": AGENTS}),
    (ENVIRONMENTS, SingleAgentTurn.implementation): _TURN,
    (ENVIRONMENTS, SingleAgentTurnLegacy.implementation): _TURN,
    **harness_configured.IMPLEMENTATIONS,
    **usersim_configured.IMPLEMENTATIONS,
}


class Catalogue(Mapping[Key, Implementation]):
    """The implementations by key; a model server is imported when its settings are asked for."""

    def __getitem__(self, key: Key) -> Implementation:
        server_type, name = key
        if server_type == MODELS and name in models.SHIPPED:
            return Implementation(models.load(name)[1])
        return _SETTLED[key]

    def __iter__(self) -> Iterator[Key]:
        yield from _SETTLED
        yield from ((MODELS, name) for name in models.SHIPPED)

    def __len__(self) -> int:
        return len(_SETTLED) + len(models.SHIPPED)


AGENT_SERVERS: Mapping[str, type[AgentServer[Any]]] = {
    RemoteAgent.implementation: RemoteAgent,
    SimpleAgent.implementation: SimpleAgent,
    harness_configured.COMMAND: HarnessAgent,
    harness_configured.FRAMEWORK: HarnessAgent,
}
"""Our agent servers by implementation."""

KNOWN = Catalogue()
"""What ``config.load`` checks settings against."""


def app_of(
    server: ServerInstance,
    routes: Mapping[str, Route],
    neighbours: Sequence[Route],
    capture: Capture | None = None,
) -> ServerApp:
    """The server that ``server`` describes; ``routes`` are its references, ``neighbours`` all resources servers here.

    ``capture`` takes the records of a model server; with one, agents report what they saw.
    Raises ConfigError for an implementation that we do not ship.
    """
    kind, name = server.server_type, server.implementation
    if kind == RESOURCES and (name in SHIPPED or name in ALIASES):
        assert isinstance(server.config, ResourcesConfig)
        return load(name)(server.name, expose_tools_over_mcp=server.config.expose_tools_over_mcp)
    if kind == RESOURCES and server.entrypoint is not None:
        return package.opened(server.entrypoint, server.name, **package_settings(server).model_dump())[0]
    if kind == MODELS and name in models.SHIPPED:
        return models.load(name)[0](server.name, server.config, capture=capture)
    if (kind, name) not in _MAKERS:
        there = [other for server_type, other in KNOWN if server_type == kind]
        raise ConfigError(f"{server.name}: gymkit has no {name} among its {kind}; {nearest(name, there)}")
    return _MAKERS[kind, name](server, routes, neighbours, capture is not None and capture.observed)


def package_settings(server: ServerInstance) -> ResourcesConfig:
    """The settings of an environment that was saved as a package. Raises ConfigError."""
    try:
        return ResourcesConfig.model_validate(server.settings)
    except ValidationError as error:
        raise ConfigError(f"{server.name}: {'; '.join(sentences(error, server.settings))}") from None


def _remote(server: ServerInstance, routes: Mapping[str, Route], *_: object) -> ServerApp:
    assert isinstance(server.config, RemoteAgentConfig)
    return RemoteAgent(server.name, server.config, routes["resources_server"])


def _simple(
    server: ServerInstance, routes: Mapping[str, Route], neighbours: Sequence[Route], observed: bool
) -> ServerApp:
    assert isinstance(server.config, SimpleAgentConfig)
    resources = routes.get("resources_server")
    model = routes["model_server"]
    return SimpleAgent(server.name, server.config, model, resources, neighbours=neighbours, observed=observed)


def _relay(server: ServerInstance, routes: Mapping[str, Route], *_: object) -> ServerApp:
    return LegacyAgent(server.name, routes["agent_server"])


def _turn(server: ServerInstance, routes: Mapping[str, Route], *_: object) -> ServerApp:
    assert isinstance(server.config, SingleAgentTurnConfig)
    legacy = server.implementation == SingleAgentTurnLegacy.implementation
    kind = SingleAgentTurnLegacy if legacy else SingleAgentTurn
    return kind(server.name, server.config, routes["resources_server"], routes["agent_server"])


_MAKERS: Mapping[Key, Callable[[ServerInstance, Mapping[str, Route], Sequence[Route], bool], ServerApp]] = {
    (AGENTS, RemoteAgent.implementation): _remote,
    (AGENTS, SimpleAgent.implementation): _simple,
    (AGENTS, harness_configured.COMMAND): harness_configured.server_of,
    (AGENTS, harness_configured.FRAMEWORK): harness_configured.server_of,
    (ENVIRONMENTS, LegacyAgent.implementation): _relay,
    (ENVIRONMENTS, SingleAgentTurn.implementation): _turn,
    (ENVIRONMENTS, SingleAgentTurnLegacy.implementation): _turn,
}
