"""An environment server: it owns the protocol of an episode. A protocol of your own is one class with one method.

::

    class Twice(EnvironmentServer[Question]):
        implementation = "twice"
        Task = Question                                  # a pydantic model of task_input

        async def play(self, episode):
            room = await Room.open(self.resources, episode, episode.task.fields)
            agent = await Player.open(self.agent, episode, [room.direct_http()])
            first = await agent.respond({"input": episode.task.text})
            ...
            return {"reward": 1.0, "response": first}

The base admits so many episodes at once, ends one that takes too long, lets go of what an episode opened however it
ended, and answers 200 with a result or with a failure that says why there is none.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gymkit.errors import ServerError
from gymkit.servers.agent import AGGREGATE_TIMEOUT
from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.episode import Episode, EpisodeFailed, is_retryable, sheltered
from gymkit.servers.http import Refused, Request
from gymkit.servers.route import Route
from gymkit.wire.episodes import EpisodeFailure, EpisodeRequest
from gymkit.wire.problems import sentences

log = logging.getLogger("gymkit")

TaskModel = TypeVar("TaskModel", bound=BaseModel)

RESERVED = ("ng_trajectory", "ng_model_call_capture", "ng_perf")
"""Keys that only a collector writes, beside every key that starts with ``_ng_``."""


class EnvironmentConfig(BaseModel):
    """The bounds of every environment server, by NeMo Gym's names."""

    model_config = ConfigDict(extra="forbid")

    max_concurrent_episodes: int | None = Field(None, gt=0)
    """Episodes at once; None sets no bound."""
    queue_timeout_seconds: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Seconds that an episode may wait for its turn."""
    default_episode_timeout_seconds: float | None = Field(21_600.0, gt=0, allow_inf_nan=False)
    """Seconds that an episode may take once it has begun."""
    cleanup_timeout_seconds: float = Field(180.0, gt=0, allow_inf_nan=False)
    """Seconds that letting go of what an episode opened may take, in all."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.max_concurrent_episodes is not None and self.queue_timeout_seconds is None:
            raise ValueError("queue_timeout_seconds is needed with max_concurrent_episodes")
        return self


class AnyTask(BaseModel):
    """A task of any fields."""

    model_config = ConfigDict(extra="allow")


class EnvironmentServer(ServerApp, Generic[TaskModel]):
    """Base of every environment server; see the module's example."""

    server_type = "environment_servers"
    cut_short = frozenset({"POST /run"})
    Task: ClassVar[type[BaseModel]] = AnyTask
    """What ``task_input`` has to be."""
    metrics: Route | None = None
    """The server that aggregates a run; None aggregates here."""

    def __init__(self, name: str, config: EnvironmentConfig | None = None) -> None:
        super().__init__(name)
        self.config = config or EnvironmentConfig()
        limit = self.config.max_concurrent_episodes
        self._slots = asyncio.Semaphore(limit) if limit else None

    @abstractmethod
    async def play(self, episode: Episode[TaskModel]) -> Mapping[str, Any]:
        """Play one episode and return its result, by convention a verifier's reply with ``reward`` and ``response``.

        Raise EpisodeFailed (or let ``episode.stage`` do it) for a failure that the caller should be told; anything
        else that is raised is told as a fault of this server, except an error of a call, which is told as what it is.
        """

    def handlers(self) -> Mapping[str, Handler]:
        """One episode, and the run's metrics."""
        return {"POST /run": self._run, "POST /aggregate_metrics": self._aggregate_metrics}

    async def episode(self, request: EpisodeRequest) -> dict[str, Any]:
        """Play the episode that ``request`` asks for: the reply, with exactly one of result and failure.

        Raises Refused (422) for a task that is not of this environment.
        """
        task = self._checked(request.task.task_input)
        bound = self.config.cleanup_timeout_seconds
        episode: Episode[Any] = Episode(request.episode_id, request.task.task_id, task, bound=bound)
        try:
            async with self._slot():
                try:
                    return _reply(request, await self._outcome(episode), None)
                finally:
                    await sheltered(episode.unwind())
        except EpisodeFailed as error:
            return _reply(request, None, error.failure)

    async def _run(self, request: Request) -> Any:
        return await self.episode(request.checked(EpisodeRequest))

    def _checked(self, task_input: dict[str, Any]) -> BaseModel:
        try:
            return self.Task.model_validate(task_input)
        except ValidationError as error:
            problems = [f"task.task_input.{problem}" for problem in sentences(error, task_input)]
            raise Refused(422, problems, kind="invalid_task") from None

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        if self._slots is None:
            yield
            return
        patience = self.config.queue_timeout_seconds
        try:
            async with asyncio.timeout(patience):
                await self._slots.acquire()
        except TimeoutError:
            reason = f"Episode admission timed out: no slot was free within queue_timeout_seconds={patience:g} s"
            raise EpisodeFailed(reason, terminal=False, kind="timeout", stage="admission") from None
        try:
            yield
        finally:
            self._slots.release()

    async def _outcome(self, episode: Episode[Any]) -> dict[str, Any]:
        seconds = self.config.default_episode_timeout_seconds
        bound = asyncio.timeout(seconds)
        try:
            async with bound:
                result = dict(await self.play(episode))
        except EpisodeFailed:
            raise
        except Exception as error:
            if bound.expired():
                reason = f"Episode timed out: it took longer than default_episode_timeout_seconds={seconds:g} s"
                raise EpisodeFailed(reason, terminal=False, kind="timeout") from error
            raise self._unhandled(episode, error) from error
        if taken := [key for key in result if key.startswith("_ng_") or key in RESERVED]:
            raise self._unhandled(episode, ValueError(f"the result has keys that only a collector writes: {taken}"))
        return result

    def _unhandled(self, episode: Episode[Any], error: Exception) -> EpisodeFailed:
        if isinstance(error, ServerError):
            return EpisodeFailed(str(error), terminal=not is_retryable(error), kind=error.kind)
        log.exception("%s: episode %s failed", self.name, episode.id.capture_key, exc_info=error)
        reason = f"Unhandled environment server error: {type(error).__name__}: {error}"
        return EpisodeFailed(reason, terminal=True)

    async def _aggregate_metrics(self, request: Request) -> Any:
        if self.metrics is None:
            return await self.aggregated(request)
        reply = await self.metrics.post("/aggregate_metrics", request.body, timeout=AGGREGATE_TIMEOUT)
        return reply.expect_ok().json()


def _reply(request: EpisodeRequest, result: dict[str, Any] | None, failure: EpisodeFailure | None) -> dict[str, Any]:
    return {
        "episode_id": request.episode_id.model_dump(),
        "task_id": request.task.task_id.model_dump(),
        "result": result,
        "failure": None if failure is None else failure.model_dump(),
    }
