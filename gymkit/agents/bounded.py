"""An agent whose rollouts have their bounds here: so many at once, so many seconds each, and no failure is an error."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from gymkit.agents.failure import RolloutFailed, cause_of, failure_row
from gymkit.agents.loop import LoopAgent, as_items
from gymkit.agents.observed import Invocation, bundle
from gymkit.agents.trace import Trace
from gymkit.servers.route import Route
from gymkit.wire.tasks import capture_key_of, strip_result_fields


class BoundedAgent(LoopAgent):
    """Base of the agents whose answering side may do anything: whatever it does becomes a row."""

    failure_class: ClassVar[str]
    """What its failure rows say in ``_ng_failure_class``."""

    def __init__(
        self, name: str, resources: Route, *, concurrency: int, run_timeout_secs: float, max_steps: int | None
    ) -> None:
        super().__init__(name, resources, max_steps=max_steps)
        self.run_timeout_secs = run_timeout_secs
        self._slots = asyncio.Semaphore(concurrency)

    async def run(self, row: dict[str, Any]) -> dict[str, Any]:
        """One rollout: the verify reply, or a failure row. Only cancellation raises."""
        rollout = capture_key_of(row)
        row = strip_result_fields(row)
        async with self._slots:
            trace = Trace()
            bound = asyncio.timeout(self.run_timeout_secs)
            try:
                async with bound:
                    verified = await self.play(row, trace, rollout, self.training)
            except Exception as error:  # noqa: BLE001 - the seed: every failure is a row in the sidecar
                cause = self._cause(error, trace, bound.expired())
                return failure_row(
                    row,
                    trace,
                    cause,
                    label=self.failure_class,
                    placeholder=f"{self.implementation}_failure",
                    agent=self.name,
                )
        if trace.models_asked:
            seen = [Invocation(as_items(row["responses_create_params"])["input"], trace, trace.seconds)]
            verified["ng_agent_observations"] = bundle(self.implementation, None, seen, by_session=True)
        return {**verified, "gymkit": trace.fields()}

    def answering(self) -> str:
        """What messages call the answering side."""
        return self.name

    def _cause(self, error: Exception, trace: Trace, out_of_time: bool) -> RolloutFailed:
        trace.termination_reason = "deadline" if out_of_time else "error"
        if out_of_time:
            bound = f"run_timeout_secs={self.run_timeout_secs:g} s"
            message = f"the rollout did not finish within {bound} ({trace.steps} calls of {self.answering()})"
            return RolloutFailed(message, kind="timeout")
        return cause_of(error, self.name)
