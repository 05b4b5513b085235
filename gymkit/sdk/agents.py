"""The agents of a notebook: what to drive and with which bounds. A run makes the server out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from pydantic import ValidationError

from gymkit.agents import remote
from gymkit.errors import ConfigError
from gymkit.sdk import bridge
from gymkit.sdk.refused import sentences
from gymkit.servers.agent import AgentServer
from gymkit.servers.capture import Capture
from gymkit.servers.route import Route

if TYPE_CHECKING:
    from gymkit.sdk.check import Report
    from gymkit.sdk.env import Env


_CALLED: Final = "/v1/responses"


@runtime_checkable
class Agent(Protocol):
    """What ``Env.rollouts`` drives."""

    name: str
    """Its name on the rows."""

    @property
    def concurrency(self) -> int:
        """Rollouts in flight, at most."""

    @property
    def run_timeout(self) -> float:
        """Seconds that one rollout may take."""

    def settings(self) -> dict[str, Any]:
        """What its results depend on; a resume with other settings is refused."""

    def server(self, resources: Route, capture: Capture | None = None) -> AgentServer[Any]:
        """The agent server that does its rollouts in the environment behind ``resources``.

        ``capture`` takes the records of the models in this process that it asks.
        """


def checked_agent(agent: object) -> Agent:
    """``agent``, if it is one. Raises ConfigError that says how to make one of what was given."""
    if isinstance(agent, Agent) and not isinstance(agent, type):
        return agent
    if isinstance(agent, str):
        raise ConfigError("a URL is no agent yet: gk.RemoteAgent(url) drives the service there")
    if hasattr(agent, "ask"):
        raise ConfigError(f"{agent!r:.80} is no agent yet: gk.SimpleAgent(model) is one with a loop around it")
    hint = "gk.Agent(function) makes one of a function" if callable(agent) else "such as gk.RemoteAgent(url)"
    raise ConfigError(f"an agent is needed, not {agent!r:.80}: {hint}")


class RemoteAgent:
    """An agent that somebody hosts as an HTTP service answering ``POST {url}/v1/responses``.

    Parameters
    ----------
    url:
        The service's base URL: http or https, no query string, no fragment, no credentials, no ``/v1/responses``.
    name:
        The agent's name on the rows.
    concurrency:
        Rollouts in flight against the service, at most.
    max_steps:
        Calls of the service in one rollout, at most; None leaves ``run_timeout_secs`` as the only bound.
    remote_responses_timeout_secs:
        Seconds that one call of the service may take.
    run_timeout_secs:
        Seconds that a whole rollout may take, from the moment it has its concurrency slot.

    Raises ConfigError for a value that cannot be used; a URL with credentials is not repeated in it.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "remote_agent",
        concurrency: int = 32,
        max_steps: int | None = None,
        remote_responses_timeout_secs: float = 1800.0,
        run_timeout_secs: float = 2100.0,
    ) -> None:
        try:
            self.config = remote.RemoteAgentConfig(
                agent_base_url=url,
                concurrency=concurrency,
                max_steps=max_steps,
                remote_responses_timeout_secs=remote_responses_timeout_secs,
                run_timeout_secs=run_timeout_secs,
            )
        except ValidationError as error:
            raise ConfigError(f"RemoteAgent: {sentences(error)}") from None
        if (base := self.url.removesuffix(_CALLED)) != self.url:
            raise ConfigError(f"RemoteAgent: the base URL is {base}: {_CALLED} is added to it for each call")
        self.name = name

    @property
    def url(self) -> str:
        """The service's base URL."""
        return self.config.agent_base_url

    @property
    def concurrency(self) -> int:
        """Rollouts in flight against the service, at most."""
        return self.config.concurrency

    @property
    def run_timeout(self) -> float:
        """Seconds that one rollout may take."""
        return self.config.run_timeout_secs

    def settings(self) -> dict[str, Any]:
        """What results depend on: everything but the concurrency."""
        return {"type": "remote_agent", **self.config.model_dump(exclude={"concurrency"})}

    def server(self, resources: Route, capture: Capture | None = None) -> AgentServer[Any]:
        """The agent server; the same code runs from YAML. Which models the service asks, it does not say."""
        return remote.RemoteAgent(self.name, self.config, resources)

    async def acheck(self, env: Env | None = None, *, timeout: float = 30.0, budget: float = 60.0) -> Report:
        """Try the service against the contract, rule by rule, before a run.

        About 60 calls: rollouts of up to three tasks, one by one and at once (within ``concurrency``), rollouts with a
        tool error, and odd requests, one of a megabyte (some 250,000 tokens for a model that reads all of it).

        Parameters
        ----------
        env:
            Whose tasks to try it with; by default the counter's.
        timeout:
            Seconds that one call of the service may take.
        budget:
            Seconds that the whole check may take; rules that were not reached by then are skipped.

        Returns a report: ``print`` it, ``.ok`` says that no rule failed, and ``.frame`` has one row per rule with the
        result (pass, warn, fail, skip), what was sent, what came, why it matters and how to fix it. Raises GymkitError
        when the environment fails, so that the service cannot be judged.
        """
        from gymkit.sdk.check import acheck

        return await acheck(self, env, timeout=timeout, budget=budget)

    check = bridge.twin(acheck)

    def __repr__(self) -> str:
        return f"<RemoteAgent {self.name} {self.url}>"
