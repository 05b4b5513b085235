"""A Python function as an agent."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any

from pydantic import ValidationError

from gymkit.agents.function import Function, FunctionAgent, FunctionAgentConfig
from gymkit.errors import ConfigError
from gymkit.servers.agent import AgentServer
from gymkit.servers.route import Route
from gymkit.wire.problems import sentences


class Agent:
    """An agent that is a Python function, sync or async, or a generator.

    Parameters
    ----------
    function:
        Takes the request of the Responses API that a service would get (``params["input"]`` is the conversation so
        far) and returns what the agent does next: a text, which is its answer; a tool call ``(name, {arguments})``; a
        list of calls; items; or a whole response. It is called again with the calls' outputs until it gives an answer.
        A generator is started once a rollout instead: it yields calls, gets their outputs (JSON is parsed, an error is
        what the environment said), and returns its answer; an async generator yields it last.
    name:
        The agent's name on the rows, by default the function's.
    concurrency:
        Rollouts in flight, at most. Functions that are not async run in threads.
    max_steps:
        Steps of one rollout, at most; None sets no bound but the time.
    run_timeout_secs:
        Seconds that a whole rollout may take, from the moment it has its concurrency slot.

    What the function raises is a failure of the rollout, with its line, never a reward of 0. It sees nothing of the
    task but the request. Raises ConfigError for a value that cannot be used.
    """

    def __init__(
        self,
        function: Function,
        *,
        name: str | None = None,
        concurrency: int = 32,
        max_steps: int | None = None,
        run_timeout_secs: float = 2100.0,
    ) -> None:
        if not callable(function):
            raise ConfigError(f"Agent: {function!r:.80} is no function; a service at a URL is a RemoteAgent")
        bounds = {"concurrency": concurrency, "max_steps": max_steps, "run_timeout_secs": run_timeout_secs}
        try:
            self.config = FunctionAgentConfig.model_validate(bounds)
        except ValidationError as error:
            raise ConfigError(f"Agent: {'; '.join(sentences(error, bounds))}") from None
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__).strip("<>")

    @property
    def concurrency(self) -> int:
        """Rollouts in flight, at most."""
        return self.config.concurrency

    @property
    def run_timeout(self) -> float:
        """Seconds that one rollout may take."""
        return self.config.run_timeout_secs

    def settings(self) -> dict[str, Any]:
        """What results depend on: the bounds, and the function's source where it can be had."""
        return {
            "type": "function_agent",
            **self.config.model_dump(exclude={"concurrency"}),
            "function": getattr(self.function, "__qualname__", type(self.function).__qualname__),
            "source": _digest(self.function),
        }

    def server(self, resources: Route) -> AgentServer[Any]:
        """The agent server."""
        return FunctionAgent(self.name, self.config, self.function, resources)

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"


def _digest(function: Any) -> str | None:
    """16 hex digits of the function's source; None for one that has none, as in an interactive Python."""
    try:
        source = inspect.getsource(function if inspect.isroutine(function) else type(function))
    except (OSError, TypeError):
        return None
    return hashlib.sha256(source.encode()).hexdigest()[:16]
