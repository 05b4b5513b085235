"""A model as an agent: it is asked, the tools that it calls are run, and it is asked again."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from gymkit.agents import simple
from gymkit.errors import ConfigError
from gymkit.sdk.models import Model, route_of
from gymkit.servers.agent import AgentServer
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.capture import Capture
from gymkit.servers.route import Route
from gymkit.wire.problems import sentences

MODEL_SERVER = "policy_model"
"""What the model server of an agent in this process is called."""


class SimpleAgent:
    """An agent that is nothing but a model and the loop around it.

    Parameters
    ----------
    model:
        A ``gk.Model``; or the URL of a service that answers ``POST {url}/v1/responses``; or a route to a model server.
    name:
        The agent's name on the rows.
    max_steps:
        Calls of the model in one rollout, at most; None sets no bound but the time.
    concurrency:
        Rollouts in flight, at most.
    run_timeout_secs:
        Seconds that a whole rollout may take.

    A model that fails is a failure of the rollout, never a reward of 0. Raises ConfigError for a value that cannot be
    used; a URL with credentials is not repeated in it.
    """

    def __init__(
        self,
        model: Model | str | Route,
        *,
        name: str = "simple_agent",
        max_steps: int | None = None,
        concurrency: int = 32,
        run_timeout_secs: float = 2100.0,
    ) -> None:
        if isinstance(model, str) and (problem := base_url_problem(model)):
            raise ConfigError(f"SimpleAgent: the model's URL {problem}")
        if concurrency < 1 or not 0 < run_timeout_secs < float("inf"):
            raise ConfigError("SimpleAgent: concurrency must be at least 1 and run_timeout_secs a number above 0")
        try:
            self.config = simple.SimpleAgentConfig(max_steps=max_steps)
        except ValidationError as error:
            raise ConfigError(f"SimpleAgent: {'; '.join(sentences(error, {'max_steps': max_steps}))}") from None
        self.model = model
        self.name = name
        self.concurrency = concurrency
        self.run_timeout = run_timeout_secs

    def settings(self) -> dict[str, Any]:
        """What results depend on."""
        model = self.model.settings() if isinstance(self.model, Model) else {"url": self._place}
        return {"type": "simple_agent", "max_steps": self.config.max_steps, "model": model}

    def server(self, resources: Route, capture: Capture | None = None) -> AgentServer[Any]:
        """The agent server; the same code runs from YAML. A ``gk.Model`` is recorded in ``capture``."""
        correlated = not isinstance(self.model, str)
        return simple.SimpleAgent(
            self.name,
            self.config,
            route_of(MODEL_SERVER, self.model, capture),
            resources,
            correlated=correlated,
            observed=capture is not None and correlated,
        )

    @property
    def _place(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.url

    def __repr__(self) -> str:
        return f"<SimpleAgent {self.name} {self.model.name if isinstance(self.model, Model) else self._place}>"
