"""From a configuration to its servers, and to a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gymkit.agents.remote import RemoteAgent, RemoteAgentConfig
from gymkit.collect.collector import ROLLOUT_TIMEOUT_SECS
from gymkit.collect.evidence import Evidence
from gymkit.collect.plan import Expansion
from gymkit.collect.routing import ByTaskset, Target
from gymkit.collect.tokens import Tokens
from gymkit.config import Config, ServerInstance, redacted
from gymkit.environments.legacy_agent import LegacyAgent
from gymkit.resources import ALIASES
from gymkit.sdk import harness_configured, usersim_configured
from gymkit.sdk.catalogue import AGENT_SERVERS, AGENTS, ENVIRONMENTS, MODELS, RESOURCES, app_of
from gymkit.sdk.collection import Collection, patience
from gymkit.sdk.harness_configured import HarnessConfig
from gymkit.sdk.observability import capture_of
from gymkit.sdk.package import identity as identity_of
from gymkit.sdk.routed import resources_of
from gymkit.sdk.token_capture import switched, token_capture_of, turned
from gymkit.servers.app import ServerApp
from gymkit.servers.route import Route

IN_FLIGHT = 32
"""Rollouts in flight where neither the run nor the agent says how many."""


def build(config: Config) -> dict[str, ServerApp]:
    """The servers of ``config`` (loaded with ``catalogue.KNOWN``) as apps by name; they call each other in process.

    Raises ConfigError for an implementation that we do not ship.
    """
    apps: dict[str, ServerApp] = {}
    capture, tokens = capture_of(config), token_capture_of(config)
    recording, observed = capture is not None, capture is not None and capture.observed
    silent = usersim_configured.users(config)
    for server_type in (MODELS, RESOURCES, AGENTS, ENVIRONMENTS):
        neighbours = [Route.to_app(name, app) for name, app in apps.items() if app.server_type == RESOURCES]
        for server in config.of_type(server_type):
            routes = {key: Route.to_app(ref.name, apps[ref.name]) for key, ref in server.references.items()}
            if _is_usersim(server):
                apps[server.name] = usersim_configured.server_of(
                    config, server, routes, observed=observed, recording=recording
                )
            else:
                mute = server.name in silent or not recording  # asked to record, a model leaves tokens off its reply
                switch = turned(server, False) if mute else switched(server, tokens)
                apps[server.name] = app_of(switch, routes, neighbours, capture)
    return apps


def agent_classes(
    config: Config, routing: ByTaskset, apps: Mapping[str, ServerApp] | None
) -> dict[str, type[ServerApp] | None]:
    """The agents of a run by name; None for one that runs elsewhere and that we do not ship."""
    fronts = [config.server(target.environment_server, ENVIRONMENTS) for target in routing.targets]
    agents = [config.server(name, AGENTS) for front in fronts for name in front.agents]
    return {each.name: type(apps[each.name]) if apps else AGENT_SERVERS.get(each.implementation) for each in agents}


def session_fronts(config: Config, routing: ByTaskset) -> list[str]:
    """The environment servers of a run that drive their agents' sessions; a relay hands over the rows instead."""
    fronts = [config.server(target.environment_server, ENVIRONMENTS) for target in routing.targets]
    return [front.name for front in fronts if front.implementation != LegacyAgent.implementation]


def run_of(
    config: Config,
    routing: ByTaskset,
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
    """The run over ``tasks`` that goes where ``routing`` says, not begun.

    ``apps`` are the servers in this process (``build``); None reaches those that run already at their URLs.
    The other parameters are those of ``Collection``; ``concurrency`` is by default what the agents allow.
    """
    capture = capture_of(config)
    fronts = [config.server(target.environment_server, ENVIRONMENTS) for target in routing.targets]
    bounds = [bounds_of(config.server(name, AGENTS)) for front in fronts for name in front.agents]
    slots = min((each.concurrency for each in bounds if each), default=IN_FLIGHT)
    in_flight = concurrency or slots
    patient = [patience(each.run_timeout_secs, in_flight, each.concurrency) for each in bounds if each]
    prepared = any(target.result_type == usersim_configured.NAME for target in routing.targets)
    return Collection(
        tasks=usersim_configured.task_rows(tasks) if prepared else tasks,
        routing=routing,
        routes={
            front.name: Route.to_url(front.name, front.url)
            if apps is None
            else Route.to_app(front.name, apps[front.name])
            for front in fronts
        },
        output=output,
        settings=_settings(config, routing, fronts) | _definitions(config, fronts, apps or {}),
        expansion=expansion,
        concurrency=in_flight,
        rollout_timeout=max(patient) if bounds and len(patient) == len(bounds) else ROLLOUT_TIMEOUT_SECS,
        resume=resume,
        aggregate=aggregate,
        require_complete=require_complete,
        evidence=Evidence(capture, tokens=Tokens(token_capture_of(config).rules)) if capture else None,
        closing=() if apps is None else tuple(apps.values()),
    )


def _is_usersim(server: ServerInstance) -> bool:
    return server.implementation == usersim_configured.NAME


def _settings(config: Config, routing: ByTaskset, fronts: list[ServerInstance]) -> dict[str, Any]:
    """What results depend on: for one agent behind its relay as in ``Env.rollouts``, so that either resumes it."""
    environments = dict.fromkeys(_environment(config, front) for front in fronts)
    settings: dict[str, Any] = {"environment": ", ".join(environments)}
    if routing.flat is not None and routing.flat.agent is not None:
        settings["agent"] = identity(config, config.server(routing.flat.agent, AGENTS))
    owners = [front for front in fronts if not _is_relay(front, routing.flat)]
    if owners:
        settings["environment_servers"] = {front.name: _protocol(config, front) for front in owners}
    return settings


def _definitions(config: Config, fronts: list[ServerInstance], apps: Mapping[str, ServerApp]) -> dict[str, Any]:
    """What results depend on of an environment that is made of functions, as in ``Env.rollouts``."""
    servers = [resources_of(config, front) for front in fronts]
    found = [identity_of(apps[each.name]) for each in servers if each and each.name in apps]
    return found[0] if len(found) == 1 else {}


def _is_relay(front: ServerInstance, flat: Target | None) -> bool:
    """Whether nothing but the agent matters."""
    return front.implementation == "legacy_agent" and flat is not None and front.name == flat.environment_server


def _protocol(config: Config, front: ServerInstance) -> dict[str, Any]:
    agents = {name: identity(config, config.server(name, AGENTS)) for name in front.agents}
    return {"type": front.implementation, **front.settings, "agents": agents}


def _environment(config: Config, front: ServerInstance) -> str:
    resources = resources_of(config, front)
    return ALIASES.get(resources.implementation, resources.implementation) if resources else ""


def remote_config(agent: ServerInstance) -> RemoteAgentConfig | None:
    """The bounds of a remote agent, as published by its discovery endpoint or loaded; None for other agents."""
    if isinstance(agent.config, RemoteAgentConfig) or agent.implementation != RemoteAgent.implementation:
        return agent.config if isinstance(agent.config, RemoteAgentConfig) else None
    try:
        return RemoteAgentConfig.model_validate(agent.settings)
    except ValidationError:
        return None  # a neighbour's remote agent with settings of its own


def bounds_of(agent: ServerInstance) -> RemoteAgentConfig | HarnessConfig | None:
    """How many rollouts an agent does at once, and how long each may take; None for agents that do not say."""
    known = harness_configured.IMPLEMENTATIONS.get((AGENTS, agent.implementation))
    if known is None:
        return remote_config(agent)
    settings = agent.config or known.config.model_validate(agent.settings)
    assert isinstance(settings, HarnessConfig)
    return settings


def identity(config: Config, agent: ServerInstance) -> dict[str, Any]:
    """What results depend on of an agent: the same as its ``settings`` in the SDK."""
    bounds = bounds_of(agent)
    if isinstance(bounds, HarnessConfig):
        settings = bounds.model_dump(exclude=set(harness_configured.NOT_OF_RESULTS))
    else:
        settings = redacted(agent.settings) if bounds is None else bounds.model_dump(exclude={"concurrency"})
    identity = {"type": agent.implementation, **settings}
    if model := agent.references.get("model_server"):
        server = config.server(model.name, MODELS)
        identity["model"] = {"type": server.implementation, **redacted(server.settings)}
    return identity
