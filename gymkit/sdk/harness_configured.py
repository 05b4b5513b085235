"""Agents that people have already, out of a configuration: ``command_agent`` and ``framework_agent``.

A program is run once a rollout; an agent of a framework is made by a function in the file that ``entrypoint`` names.
Both are what ``Agent.command`` and ``Agent.adapt`` make in a notebook.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import Field

from gymkit.agents.command import Command, CommandConfig
from gymkit.agents.framework import Build
from gymkit.agents.frameworks import adapter
from gymkit.agents.function import FunctionAgentConfig
from gymkit.agents.harness import Harness, HarnessAgent
from gymkit.config import Implementation, ServerInstance
from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.sdk.module import load_module
from gymkit.servers.route import Route

COMMAND: Final = "command_agent"
FRAMEWORK: Final = "framework_agent"

_ENTRYPOINT: Final = "{entrypoint}"


class HarnessConfig(FunctionAgentConfig):
    """What both have."""

    token_id_capture: bool = False
    """Whether the model server is asked to record token ids for training."""


class CommandAgentConfig(CommandConfig, HarnessConfig):
    """Settings of a program; ``{entrypoint}`` in ``argv`` is the file of that name beside the configuration."""


class FrameworkAgentConfig(HarnessConfig):
    """Settings of an agent that is written with a framework."""

    framework: str
    """``langgraph``, ``openai-agents``, ``pydantic-ai`` or ``smolagents``."""
    function: str = Field(min_length=1)
    """The function in the ``entrypoint`` that makes the agent of a kit, once a rollout."""


_RESOURCES: Final = {"resources_server": "resources_servers"}
_MODEL: Final = {"model_server": "responses_api_models"}

IMPLEMENTATIONS: Final[Mapping[tuple[str, str], Implementation]] = {
    ("responses_api_agents", COMMAND): Implementation(CommandAgentConfig, _RESOURCES, _MODEL),
    ("responses_api_agents", FRAMEWORK): Implementation(FrameworkAgentConfig, {**_RESOURCES, **_MODEL}),
}
"""What ``config.load`` checks settings against."""

NOT_OF_RESULTS: Final = frozenset({"concurrency", "env", "output_limit"})
"""Settings that results do not depend on, or that may be secrets."""


class Located(Protocol):
    """What can be run."""

    argv: list[str]
    """The program and its arguments."""


def locate(config: Located, who: str) -> None:
    """Put the program's path in the place of its name: it runs in another folder. Raises ConfigError."""
    program = shutil.which(config.argv[0])
    if program is None:
        raise ConfigError(f"{who}: there is no program {config.argv[0]!r} on the PATH")
    config.argv[0] = os.path.abspath(program)  # noqa: PTH100 - a link stays one: programs look at their own name


def server_of(
    server: ServerInstance, routes: Mapping[str, Route], _: object = None, observed: bool = False
) -> HarnessAgent:
    """The agent server that ``server`` describes. Raises ConfigError for a program, a file or a function not there."""
    settings = server.config
    assert isinstance(settings, HarnessConfig)
    model = routes.get("model_server")
    harness = _command(server, settings, model) if isinstance(settings, CommandAgentConfig) else _framework(server)
    return HarnessAgent(
        server.name,
        settings,
        harness,
        model,
        routes["resources_server"],
        observed=observed and model is not None,
        token_id_capture=settings.token_id_capture and model is not None,
    )


def _command(server: ServerInstance, settings: CommandAgentConfig, model: Route | None) -> Harness:
    config = settings.model_copy(update={"argv": list(settings.argv)})
    if any(_ENTRYPOINT in part for part in config.argv):
        path = str(_entrypoint(server).resolve())
        config.argv = [part.replace(_ENTRYPOINT, path) for part in config.argv]
    locate(config, server.name)
    return Command(config, has_model=model is not None)


def _framework(server: ServerInstance) -> Harness:
    assert isinstance(server.config, FrameworkAgentConfig)
    return adapter(server.config.framework, _function(server, server.config.function))


def _function(server: ServerInstance, name: str) -> Build:
    path = _entrypoint(server)
    module = load_module(path, f"gymkit_agent_{server.name}")
    found: Any = getattr(module, name, None)
    if not callable(found):
        there = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        raise ConfigError(f"{server.name}: {path} has no function {name!r}; {nearest(name, there)}")
    return found  # type: ignore[no-any-return]


def _entrypoint(server: ServerInstance) -> Path:
    if server.entrypoint is None:
        raise ConfigError(f"{server.name}: entrypoint must name a file beside the configuration: it is not there")
    return server.entrypoint
