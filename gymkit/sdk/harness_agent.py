"""Agents that people have already, written with a framework or as a program, on a model of the notebook's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from pydantic import ValidationError

from gymkit.agents import harness as servers
from gymkit.agents.command import Command, CommandConfig
from gymkit.agents.framework import Build
from gymkit.agents.frameworks import adapter
from gymkit.agents.function import FunctionAgentConfig
from gymkit.errors import ConfigError
from gymkit.sdk.function_agent import digest
from gymkit.sdk.harness_configured import locate
from gymkit.sdk.models import Model, route_of
from gymkit.sdk.simple_agent import MODEL_SERVER
from gymkit.servers.agent import AgentServer
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.capture import Capture
from gymkit.servers.route import Route
from gymkit.wire.problems import sentences

Source = Model | str | Route | None
"""Where a model is."""


class HarnessAgent:
    """What ``Agent.adapt`` and ``Agent.command`` make. ``make`` makes the harness of a run, ``told`` is what it is."""

    def __init__(
        self,
        make: Callable[[], servers.Harness],
        told: Mapping[str, Any],
        model: Source,
        *,
        name: str,
        concurrency: int = 32,
        max_steps: int | None = None,
        run_timeout_secs: float = 2100.0,
    ) -> None:
        if isinstance(model, str) and (problem := base_url_problem(model)):
            raise ConfigError(f"Agent: the model's URL {problem}")
        bounds = {"concurrency": concurrency, "max_steps": max_steps, "run_timeout_secs": run_timeout_secs}
        try:
            self.config = FunctionAgentConfig.model_validate(bounds)
        except ValidationError as error:
            raise ConfigError(f"Agent: {'; '.join(sentences(error, bounds))}") from None
        self.model = model
        self.name = name
        self._make = make
        self._told = told

    @property
    def concurrency(self) -> int:
        """Rollouts in flight, at most."""
        return self.config.concurrency

    @property
    def run_timeout(self) -> float:
        """Seconds that one rollout may take."""
        return self.config.run_timeout_secs

    def settings(self) -> dict[str, Any]:
        """What results depend on: the bounds, the framework or the program, and the model."""
        bounds = self.config.model_dump(exclude={"concurrency"})
        return {"type": "harness_agent", **bounds, **self._told, "model": self._model_settings()}

    def server(self, resources: Route, capture: Capture | None = None) -> AgentServer[Any]:
        """The agent server. A ``gk.Model`` is recorded in ``capture``, with its token ids where it gives them."""
        correlated = not isinstance(self.model, str)
        return servers.HarnessAgent(
            self.name,
            self.config,
            self._make(),
            None if self.model is None else route_of(MODEL_SERVER, self.model, capture),
            resources,
            correlated=correlated,
            observed=capture is not None and correlated,
            token_id_capture=capture is not None and isinstance(self.model, Model) and self.model.token_ids,
        )

    def _model_settings(self) -> dict[str, Any] | None:
        if isinstance(self.model, Model):
            return self.model.settings()
        return {"url": self.model.url if isinstance(self.model, Route) else self.model} if self.model else None

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"


def adapted(framework: str, build: Build, model: Source, *, name: str | None = None, **bounds: Any) -> HarnessAgent:
    """``Agent.adapt``. Raises ConfigError."""
    if not callable(build):
        raise ConfigError(f"Agent.adapt: {build!r:.80} is no function; it has to make a new agent for each rollout")
    adapter(framework, build)  # the name and the package, now and not in the first rollout
    told = {
        "framework": framework,
        "version": version(framework if framework != "pydantic-ai" else "pydantic-ai-slim"),
        "function": getattr(build, "__qualname__", type(build).__qualname__),
        "source": digest(build),
    }
    name = name or getattr(build, "__name__", framework).strip("<>")
    return HarnessAgent(lambda: adapter(framework, build), told, model, name=name, **bounds)


def commanded(settings: dict[str, Any], model: Source, *, name: str | None = None, **bounds: Any) -> HarnessAgent:
    """``Agent.command``. Raises ConfigError."""
    try:
        config = CommandConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f"Agent.command: {'; '.join(sentences(error, settings))}") from None
    locate(config, "Agent.command")
    told = {"command": config.model_dump(exclude={"env", "output_limit"})}
    has_model = model is not None
    name = name or settings["argv"][0].replace("\\", "/").rpartition("/")[2]
    return HarnessAgent(lambda: Command(config, has_model=has_model), told, model, name=name, **bounds)
