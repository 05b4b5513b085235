"""``simple_agent``: a model that is called, and the tools it asks for run, until it answers.

It does a whole rollout on ``/run``, one turn on ``/v1/responses``, and the turns of agent sessions, in which an
environment server grants the tools and keeps the verdict to itself. A model that cannot be reached, or that answers
with no response, is an error of the call (500), as it is at NeMo Gym.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gymkit.agents.failure import RolloutFailed
from gymkit.agents.loop import LoopAgent, as_items, checked_reply
from gymkit.agents.observed import Invocation, bundle
from gymkit.agents.tenancy import CONNECT_ATTEMPTS, Tenancy
from gymkit.agents.trace import Trace
from gymkit.servers.agent_session import RETRY_WINDOW
from gymkit.servers.http import Refused
from gymkit.servers.route import CookieJar, Route
from gymkit.wire.agent_sessions import ToolAccesses
from gymkit.wire.tasks import capture_key_of, strip_result_fields

MODEL_TIMEOUT = 21_600.0
"""Seconds that one call of the model may take; a run's and an episode's own bounds end it long before."""


class SimpleAgentConfig(BaseModel):
    """Settings of a simple agent, by NeMo Gym's names."""

    model_config = ConfigDict(extra="forbid")

    max_steps: int | None = Field(None, gt=0)
    """Calls of the model in one rollout, at most."""
    execute_tools: bool = True
    """Whether tool calls are run here; False leaves them to the environment server, which then has to use sessions."""
    session_close_retry_window_seconds: float = Field(RETRY_WINDOW, gt=0, allow_inf_nan=False)
    """Seconds for which a closed session can be closed again."""
    skip_verification: bool = False
    """Whether rollouts are not verified but all get the same reward."""
    skip_verification_reward: float = Field(0.0, allow_inf_nan=False)
    """That reward."""
    token_id_capture: bool = False
    """Whether the model server is asked to record token ids for training."""
    tool_accesses: ToolAccesses = []
    """What every session may reach, beside what its seed grants."""


class SimpleAgent(LoopAgent):
    """The server; in a notebook ``gymkit.SimpleAgent`` makes one, in YAML ``simple_agent:`` does.

    ``model`` answers ``POST /v1/responses``; ``correlated`` says whether its path names the rollout, as every model
    server of the contract takes it; ``neighbours`` are servers in this process that sessions may be granted;
    ``observed`` says whether the rollouts of ``/run`` report what they saw, as sessions do.
    """

    implementation = "simple_agent"

    def __init__(
        self,
        name: str,
        config: SimpleAgentConfig,
        model: Route,
        resources: Route | None = None,
        *,
        neighbours: Iterable[Route] = (),
        correlated: bool = True,
        observed: bool = False,
    ) -> None:
        super().__init__(
            name,
            resources,
            max_steps=config.max_steps,
            execute_tools=config.execute_tools,
            tool_accesses=config.tool_accesses,
            neighbours=neighbours,
            retry_window=config.session_close_retry_window_seconds,
        )
        self.config = config
        self.training = config.token_id_capture
        self.model = model
        self.model_name = model.name
        self._correlated = correlated
        self._observes_runs = observed

    async def run(self, row: dict[str, Any]) -> dict[str, Any]:
        """One rollout: the verify reply. Raises Refused (500) when it cannot be done."""
        if not self.execute_tools:
            raise Refused(
                500, f"{self.name} executes no tools, so it takes part in sessions only", kind="needs_session"
            )
        rollout, trace = capture_key_of(row), Trace()
        try:
            verified = await self.play(strip_result_fields(row), trace, rollout, self.training)
        except RolloutFailed as error:
            raise Refused(500, str(error), kind=error.kind) from error
        if self._observes_runs:
            task_input = as_items(row["responses_create_params"])["input"]
            seen = [Invocation(task_input, trace, trace.seconds)]
            verified["ng_agent_observations"] = bundle(self.implementation, self.model_name, seen)
        return {**verified, "gymkit": trace.fields()}

    async def verdict(self, body: dict[str, Any], tenancy: Tenancy) -> dict[str, Any]:
        """The verifier's, or the constant one."""
        if not self.config.skip_verification:
            return await super().verdict(body, tenancy)
        return {**body, "reward": self.config.skip_verification_reward, "verification_skipped": True}

    def converse(self, rollout: str | None, training: bool) -> _ModelCalls:
        """The model."""
        return _ModelCalls(self.model, rollout if self._correlated else None, training)

    async def aclose(self) -> None:
        """Let go of the connections to the model and the environment."""
        await super().aclose()
        await self.model.aclose()


class _ModelCalls:
    """The calls of the model in one rollout or turn."""

    models_asked = 0

    def __init__(self, model: Route, rollout: str | None, training: bool) -> None:
        self.cookies = CookieJar()
        self._model = model
        tokens = "/training-token-capture" if training else ""
        self._path = f"/ng-rollout/{rollout}{tokens}/v1/responses" if rollout else "/v1/responses"

    async def ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """Call it."""
        reply = await self._model.post(
            self._path, params, cookies=self.cookies, timeout=MODEL_TIMEOUT, attempts=CONNECT_ATTEMPTS
        )
        self.cookies.take(reply)
        return checked_reply(reply)

    async def aclose(self) -> None:
        """Nothing: the connections are the agent's."""
