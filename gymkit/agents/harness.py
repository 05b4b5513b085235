"""``harness_agent``: an agent that somebody has already, with a loop of its own, on our models and in our environments.

A ``Harness`` does one rollout's work at a ``Desk``: its model calls go to an address of the rollout's own, where they
are recorded; its tool calls wait until they are run in the rollout's session. So its trajectory, its verdict, its
bounds and its failures are those of every other agent, and so are ``/v1/responses`` and agent sessions.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from gymkit.agents.bounded import BoundedAgent
from gymkit.agents.desk import CLOSE_SECONDS, Desk, message
from gymkit.agents.failure import RolloutFailed
from gymkit.agents.function import FunctionAgentConfig
from gymkit.agents.model_door import ModelDoor, Seat
from gymkit.agents.said import Said
from gymkit.agents.thread import place_of
from gymkit.servers.route import CookieJar, Route
from gymkit.servers.skills import stage_skills
from gymkit.wire import codec

log = logging.getLogger("gymkit")

MODEL_NAME = "policy_model"
"""What harnesses call the model; the server behind the address has one, whatever it is asked for."""
API_KEY = "gymkit"
"""The key that harnesses send: a client library wants one, and nobody reads it."""

_TURNS = 5
"""Turns of the event loop in which further calls of one reply may follow the first."""


class Harness(ABC):
    """A program or a framework that works on its own. One object serves all rollouts, many at once."""

    label: ClassVar[str]
    """What messages call it."""

    @abstractmethod
    async def work(self, desk: Desk) -> str:
        """Do one rollout's work: the final answer. Cancelled when the rollout ends before; what it raises fails it."""

    async def aclose(self) -> None:  # noqa: B027 - most have nothing
        """Let go of what rollouts share."""


class HarnessAgent(BoundedAgent):
    """The server. ``model`` answers the harness's model calls; see ``ModelDoor`` for ``correlated``.

    ``observed`` says whether rollouts report what they saw, ``token_id_capture`` whether tokens are recorded.
    """

    implementation = "harness_agent"
    failure_class = "agent_run_error"
    reads_skills = True
    opaque = True

    def __init__(
        self,
        name: str,
        config: FunctionAgentConfig,
        harness: Harness,
        model: Route | None,
        resources: Route | None,
        *,
        correlated: bool = True,
        observed: bool = False,
        token_id_capture: bool = False,
    ) -> None:
        super().__init__(
            name,
            resources,  # type: ignore[arg-type]
            concurrency=config.concurrency,
            run_timeout_secs=config.run_timeout_secs,
            max_steps=config.max_steps,
        )
        self.training = token_id_capture
        self.harness = harness
        self._observed = observed
        self.door = ModelDoor(model, correlated=correlated)

    def converse(self, rollout: str | None, training: bool) -> _Work:
        """The harness, at a desk of its own."""
        return _Work(self.name, self.harness, self.door, rollout, training, observed=self._observed)

    def converse_about(self, row: Mapping[str, Any], rollout: str | None, training: bool) -> _Work:
        """The same; the skills of the task's run lie in its folder."""
        work = self.converse(rollout, training)
        work.skilled = row
        return work

    async def aclose(self) -> None:
        """End everything."""
        await super().aclose()
        await self.door.aclose()
        await self.harness.aclose()


class _Work:
    """One rollout's work, a step at a time: each ends with calls to run, or with the answer."""

    def __init__(
        self, name: str, harness: Harness, door: ModelDoor, rollout: str | None, training: bool, *, observed: bool
    ) -> None:
        self._observed = observed
        self.cookies = CookieJar()
        self.skilled: Mapping[str, Any] = {}
        """The row whose skills are put into the folder."""
        self._harness = harness
        self._door = door
        self._rollout = rollout
        self._training = training
        self._said = Said(name)
        self._folder: Path | None = None
        self._seat: Seat | None = None
        self._desk: Desk | None = None
        self._task: asyncio.Task[str] | None = None

    @property
    def models_asked(self) -> int:
        """Model calls of the harness so far, where they are on record."""
        return self._seat.calls if self._observed and self._seat is not None else 0

    async def ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """The next step. Raises RolloutFailed for whatever the harness raises."""
        if self._desk is None or self._task is None:
            desk = await self._begin(params)
        else:
            desk = self._desk
            desk.hand_out(params["input"])
        items = await self._step(desk)
        usage = desk.seat.spent.take()
        return self._said.response({"output": items, **({"usage": usage} if usage else {})})

    async def aclose(self) -> None:
        """End the work where it stands: its address, its calls, its task and its folder go."""
        if self._seat is not None:
            self._door.leave(self._seat)
        if self._desk is not None:
            self._desk.close()
        if self._task is not None:
            self._task.cancel()
            _, late = await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
            if late:
                log.warning("%s did not let go within %g s", self._harness.label, CLOSE_SECONDS)
            elif not self._task.cancelled():
                self._task.exception()  # known already, or of no interest any more
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _begin(self, params: dict[str, Any]) -> Desk:
        request = codec.loads(codec.dumps(params))  # a copy: the harness may do with it what it likes
        self._folder = Path(tempfile.mkdtemp(prefix="gymkit-"))
        self._seat = await self._door.seat(self._rollout, self._training, request)
        skills = self._folder / "skills"
        staged = await asyncio.to_thread(stage_skills, self.skilled, skills)
        self._desk = Desk(request, self._seat, self._folder, skills if staged else None)
        self._task = asyncio.create_task(self._harness.work(self._desk))
        return self._desk

    async def _step(self, desk: Desk) -> list[dict[str, Any]]:
        assert self._task is not None
        asked = asyncio.ensure_future(desk.asked.wait())
        try:
            await asyncio.wait([self._task, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        for _ in range(_TURNS):  # what one reply of the model asks for is one step
            await asyncio.sleep(0)
        if desk.asked.is_set():
            return desk.take()
        answer = self._answer(self._task, desk)
        items = desk.take()
        return items if items and _says(items[-1], answer) else [*items, message(answer)]

    def _answer(self, task: asyncio.Task[str], desk: Desk) -> str:
        try:
            return task.result()
        except RolloutFailed:
            raise
        except (Exception, asyncio.CancelledError) as error:
            told = f"{self._harness.label} raised {type(error).__name__}: {error}{place_of(error)}"
            if (failure := desk.seat.failure) is not None:
                raise RolloutFailed(f"{told}; its model call had failed: {failure}", kind=failure.kind) from error
            raise RolloutFailed(told, kind="agent_error") from error


def _says(item: dict[str, Any], text: str) -> bool:
    content = item.get("content")
    return item.get("role") == "assistant" and isinstance(content, list) and content[0].get("text") == text
