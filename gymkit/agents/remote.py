"""``remote_agent``: drives an agent that somebody hosts as an HTTP service of its own.

The service answers ``POST /v1/responses`` with its next step. This server keeps the loop: it seeds the environment,
sends the conversation so far, executes the tool calls that come back without an output, appends the results, asks
again, and verifies the finished trajectory. The service sees the task's ``responses_create_params`` and its own
cookies, nothing else. Whatever goes wrong becomes a failure row with a sentence, never a crash and never a score.
"""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gymkit.agents.bounded import BoundedAgent
from gymkit.agents.loop import checked_reply
from gymkit.agents.tenancy import CONNECT_ATTEMPTS
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.route import CookieJar, Route

log = logging.getLogger("gymkit")


class RemoteAgentConfig(BaseModel):
    """The knobs of a remote agent; the names and defaults are the seed's."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    agent_base_url: str
    """The service's base URL: http or https, no query string, no fragment, no credentials."""
    concurrency: int = Field(32, gt=0)
    """Rollouts in flight against the service, at most."""
    remote_responses_timeout_secs: float = Field(1800.0, gt=0, allow_inf_nan=False)
    """Seconds that one call of the service may take."""
    run_timeout_secs: float = Field(2100.0, gt=0, allow_inf_nan=False)
    """Seconds that a whole rollout may take, from the moment it has its concurrency slot."""
    max_steps: int | None = Field(None, gt=0)
    """Calls of the service in one rollout, at most; None leaves ``run_timeout_secs`` as the only bound."""

    @field_validator("agent_base_url")
    @classmethod
    def _usable(cls, url: str) -> str:
        if problem := base_url_problem(url):
            raise ValueError(problem)
        return url.rstrip("/")


class RemoteAgent(BoundedAgent):
    """The server; in a notebook ``gymkit.RemoteAgent`` makes one, in YAML ``remote_agent:`` does."""

    implementation = "remote_agent"
    failure_class = "remote_agent_error"
    patient = True

    def __init__(self, name: str, config: RemoteAgentConfig, resources: Route) -> None:
        super().__init__(
            name,
            resources,
            concurrency=config.concurrency,
            run_timeout_secs=config.run_timeout_secs,
            max_steps=config.max_steps,
        )
        self.config = config
        self.service = Route.to_url(f"{name} service", config.agent_base_url)
        self._usage_missed = False

    def converse(self, rollout: str | None, training: bool) -> _ServiceCalls:
        """The service, with a cookie jar of its own; it is told nothing of the rollout."""
        return _ServiceCalls(self)

    def answering(self) -> str:
        """The service's URL."""
        return self.service.url

    async def aclose(self) -> None:
        """Let go of the connections to the service and the environment."""
        await self.service.aclose()
        await super().aclose()

    def miss_usage(self, url: str) -> None:
        """Say once that the service reports no usage."""
        if not self._usage_missed:
            self._usage_missed = True
            log.warning("%s reports no usage: the token columns of its rollouts stay empty", url)


class _ServiceCalls:
    """One rollout's calls of the service."""

    models_asked = 0

    def __init__(self, agent: RemoteAgent) -> None:
        self.cookies = CookieJar()
        self._agent = agent

    async def ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """Call it."""
        agent = self._agent
        answer = await agent.service.post(
            "/v1/responses",
            params,
            cookies=self.cookies,
            timeout=agent.config.remote_responses_timeout_secs,
            knob="remote_responses_timeout_secs",
            attempts=CONNECT_ATTEMPTS,
        )
        reply = checked_reply(answer)
        if reply.get("usage") is None:
            agent.miss_usage(answer.url)
        self.cookies.take(answer)
        return reply

    async def aclose(self) -> None:
        """Nothing: the connections are the agent's."""
