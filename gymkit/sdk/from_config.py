"""An environment and its agents out of a YAML file, embedded: ``Env.from_config``."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from gymkit.config import Config, ServerInstance, load
from gymkit.errors import ConfigError
from gymkit.resources import ALIASES, SHIPPED
from gymkit.sdk import package
from gymkit.sdk.agents import Agent, RemoteAgent
from gymkit.sdk.catalogue import AGENTS, KNOWN, MODELS, RESOURCES, app_of, package_settings
from gymkit.sdk.collection import TaskSource
from gymkit.sdk.configured import IN_FLIGHT, identity, remote_config
from gymkit.sdk.token_capture import switched, token_capture_of
from gymkit.servers.agent import AgentServer
from gymkit.servers.capture import Capture
from gymkit.servers.resources import ResourcesServer
from gymkit.servers.route import Route
from gymkit.shipped import shipped


class ConfiguredAgent:
    """An agent as a configuration describes it; its model server, if it has one, runs in this process too."""

    run_timeout = 21_600.0

    def __init__(self, config: Config, instance: ServerInstance) -> None:
        self.name = instance.name
        self.concurrency: int = getattr(instance.config, "concurrency", None) or IN_FLIGHT
        tokens = token_capture_of(config)
        self.token_rules = tokens.rules
        self._config = config
        self._instance = switched(instance, tokens)

    def settings(self) -> dict[str, Any]:
        """What its results depend on, without secrets."""
        return identity(self._config, self._instance)

    def server(self, resources: Route, capture: Capture | None = None) -> AgentServer[Any]:
        """The agent server; its model server records in ``capture``."""
        routes = {"resources_server": resources}
        if model := self._instance.references.get("model_server"):
            app = app_of(self._config.server(model.name, MODELS), {}, (), capture)
            routes["model_server"] = Route.to_app(model.name, app)
        server = app_of(self._instance, routes, (resources,), capture)
        assert isinstance(server, AgentServer)
        return server

    def __repr__(self) -> str:
        return f"<{self._instance.implementation} {self.name}>"


class Described(NamedTuple):
    """What a configuration describes."""

    name: str
    """The environment's name."""
    server: ResourcesServer[Any]
    """Its server."""
    tasks: TaskSource
    """Its tasks: those we ship with it, or those of its package."""
    agents: dict[str, Agent]
    """Its agents by name."""


def read(path: str | os.PathLike[str], overrides: tuple[str, ...]) -> Described:
    """The one resources server that the file at ``path`` describes, its tasks and its agents. Raises ConfigError."""
    config = load(overrides, flags={"config_paths": [os.fspath(path)]}, implementations=KNOWN)
    servers = config.of_type(RESOURCES)
    if len(servers) != 1:
        names = ", ".join(server.name for server in servers) or "none"
        raise ConfigError(f"{path}: an Env is one resources server, and this configuration has {names}")
    agents = {each.name: _agent(config, each) for each in config.of_type(AGENTS)}
    return Described(*_environment(servers[0]), agents)


def _environment(instance: ServerInstance) -> tuple[str, ResourcesServer[Any], TaskSource]:
    name = ALIASES.get(instance.implementation, instance.implementation)
    if name not in SHIPPED and instance.entrypoint is not None:
        settings = package_settings(instance).model_dump()
        return name, *package.opened(instance.entrypoint, instance.name, **settings)
    server = app_of(instance, {}, ())
    assert isinstance(server, ResourcesServer)
    return name, server, shipped(f"data/{name}.jsonl")


def _agent(config: Config, instance: ServerInstance) -> Agent:
    knobs = remote_config(instance)
    if knobs is None:
        return ConfiguredAgent(config, instance)
    options = knobs.model_dump(exclude={"agent_base_url"})
    return RemoteAgent(knobs.agent_base_url, name=instance.name, **options)
