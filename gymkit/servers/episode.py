"""One episode in the making: what it is, what it has to let go of at its end, and how it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from gymkit.errors import BadStatus, CallTimeout, GymkitError, ServerError, Unreachable
from gymkit.wire.episodes import REASON_LENGTH, EpisodeFailure
from gymkit.wire.failures import FailureStage
from gymkit.wire.tasks import EpisodeId, TaskId

log = logging.getLogger("gymkit")

Task = TypeVar("Task")
T = TypeVar("T")

RETRYABLE = frozenset({408, 425, 429})
"""Statuses below 500 that say to come back later."""


class EpisodeFailed(GymkitError):
    """Ends an episode with a failure that the caller is told in so many words.

    ``reason`` is a sentence, ``terminal`` says that trying again cannot help, ``kind`` is a name to group by,
    ``stage`` where it happened, ``partial_response`` the trajectory so far.
    """

    def __init__(
        self,
        reason: str,
        *,
        terminal: bool,
        kind: str | None = None,
        stage: FailureStage | None = None,
        partial_response: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(reason)
        self.failure = EpisodeFailure(
            failure_reason=reason[:REASON_LENGTH],
            terminal=terminal,
            failure_kind=kind,
            stage=stage,
            partial_response=partial_response,
        )


def is_retryable(error: Exception) -> bool:
    """Whether what ended a call may go away by itself: no answer, or one that says so."""
    if isinstance(error, BadStatus):
        return error.status in RETRYABLE or error.status >= 500
    return isinstance(error, Unreachable | CallTimeout | TimeoutError)


class Cleanup:
    """One thing to let go of. It is done once: at its time by ``now``, or else at the episode's end."""

    def __init__(self, name: str, callback: Callable[[], Awaitable[None]], bound: float) -> None:
        self.name = name
        self.done = False
        self._callback = callback
        self._bound = bound

    async def now(self) -> None:
        """Do it, unless it was done. Raises what the callback raises; it is then tried again at the episode's end."""
        if self.done:
            return
        async with asyncio.timeout(self._bound):
            await self._callback()
        self.done = True


class Episode(Generic[Task]):
    """What a protocol is given: the task, and a place to register what has to be let go of.

    ``bound`` is the seconds that all of the letting go may take.
    """

    def __init__(self, episode_id: EpisodeId, task_id: TaskId, task: Task, *, bound: float) -> None:
        self.id = episode_id
        self.task_id = task_id
        self.task = task
        self._bound = bound
        self._cleanups: list[Cleanup] = []

    def at_end(self, name: str, callback: Callable[[], Awaitable[None]]) -> Cleanup:
        """Have ``callback`` run when the episode is over, however it ends; the last one registered runs first.

        Register before you open what it closes: a lost reply is then no lost session. It must bear running twice.
        """
        self._cleanups.append(cleanup := Cleanup(name, callback, self._bound))
        return cleanup

    def path(self, path: str, *, training: bool = False) -> str:
        """``path`` with the prefix that lets servers know the rollout."""
        tokens = "/training-token-capture" if training else ""
        return f"/ng-rollout/{self.id.capture_key}{tokens}{path}"

    @contextmanager
    def stage(self, name: FailureStage, partial_response: dict[str, Any] | None = None) -> Iterator[None]:
        """Whatever is raised in this block is a failure of the episode at that stage, retryable or terminal."""
        try:
            yield
        except EpisodeFailed:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            kind = error.kind if isinstance(error, ServerError) else None
            raise EpisodeFailed(
                reason,
                terminal=not is_retryable(error),
                kind=kind,
                stage=name,
                partial_response=partial_response,
            ) from error

    async def unwind(self) -> None:
        """Let go of everything, under one bound. Nothing is raised: what fails is logged."""
        try:
            async with asyncio.timeout(self._bound):
                for cleanup in reversed(self._cleanups):
                    await self._let_go(cleanup)
        except TimeoutError:
            left = ", ".join(cleanup.name for cleanup in self._cleanups if not cleanup.done)
            log.error("episode %s: not let go of within %g s: %s", self.id.capture_key, self._bound, left)

    async def _let_go(self, cleanup: Cleanup) -> None:
        try:
            await cleanup.now()
        except Exception as error:  # noqa: BLE001 - the rest has to be let go of too
            log.warning("episode %s: %s cannot be let go of: %r", self.id.capture_key, cleanup.name, error)


async def sheltered(work: Coroutine[Any, Any, T]) -> T:
    """Await ``work`` to its end, cancelled or not; a cancellation goes on afterwards."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
