"""One collection: what to run, where, and into which files. ``Env.rollouts`` and ``gymkit eval run`` both make one."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gymkit.collect.collector import ROLLOUT_TIMEOUT_SECS, collect
from gymkit.collect.evidence import Evidence
from gymkit.collect.outcome import Outcome
from gymkit.collect.plan import Expansion, Plan, plan_rollouts
from gymkit.collect.progress import Key, Progress
from gymkit.collect.routing import Routing
from gymkit.collect.store import Store
from gymkit.collect.tasks import Tasks
from gymkit.servers.route import Route
from gymkit.views.progress import Live, live

TaskSource = str | os.PathLike[str] | Sequence[Mapping[str, Any]]
"""Task rows: a JSON lines file, or the rows themselves."""


class Closing(Protocol):
    """Something that a collection lets go of at its end."""

    async def aclose(self) -> None:
        """Let go."""


@dataclass(slots=True)
class Collection:
    """Everything that one run needs; ``collect`` does it, once."""

    tasks: TaskSource
    """The task rows."""
    routing: Routing
    """Who runs them."""
    routes: Mapping[str, Route]
    """The environment servers that answer ``/run``, by name."""
    output: Path
    """The main file; its siblings take their names from it."""
    settings: dict[str, Any]
    """What results depend on besides the tasks; a resume with others is refused."""
    expansion: Expansion = field(default_factory=Expansion)
    """How rollouts are made of task rows."""
    concurrency: int = 32
    """Rollouts in flight."""
    rollout_timeout: float = ROLLOUT_TIMEOUT_SECS
    """Seconds that one ``/run`` may take."""
    resume: bool = False
    """Go on with what is on disk."""
    again: frozenset[Key] | None = None
    """Rollouts to run again, whatever became of them, and no others; with ``resume``."""
    aggregate: bool = True
    """Whether the metrics file is written at the end."""
    require_complete: bool = False
    """Whether a rollout without a result is an error at the end."""
    evidence: Evidence | None = None
    """Where model calls are recorded, to be put on the rows; None leaves rows as they come."""
    shown: bool = True
    """Whether progress is shown while it runs."""
    closing: Iterable[Closing] = ()
    """What to let go of at the end."""
    progress: Progress = field(default_factory=Progress)
    """How far it is, readable from any thread."""
    _stop: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
    _live: Live | None = None

    def watched(self) -> AbstractContextManager[object]:
        """Show the progress while the body runs: to be entered in the thread of the cell, around ``collect``."""
        if not self.shown:
            return nullcontext()
        self._live = live(self.progress, stop=self.stop, title=self._title)
        return self._live

    async def collect(self) -> Outcome:
        """Check the tasks, then run them. Raises InputError, StoreError, ResumeMismatch, ConfigError, IncompleteRun."""
        self._stop = (asyncio.get_running_loop(), asyncio.Event())
        follower = asyncio.create_task(self._live.follow()) if self._live is not None else None
        try:
            with ExitStack() as stack:
                plan = await asyncio.to_thread(self._plan, stack)
                store = stack.enter_context(Store(self.output))
                return await collect(
                    plan,
                    store,
                    self.routes,
                    concurrency=self.concurrency,
                    resume=self.resume,
                    again=self.again,
                    rollout_timeout=self.rollout_timeout,
                    aggregate=self.aggregate,
                    require_complete=self.require_complete,
                    evidence=self.evidence,
                    progress=self.progress,
                    stop=self._stop[1],
                )
        finally:
            if follower is not None:
                follower.cancel()
            for each in (*self.routes.values(), *self.closing):
                await each.aclose()

    @property
    def begun(self) -> bool:
        """Whether the files on disk are this run's."""
        return self.progress.started_at is not None

    def stop(self) -> None:
        """Cut what is in flight and end, keeping what is done. From any thread."""
        if self._stop is not None:
            loop, event = self._stop
            loop.call_soon_threadsafe(event.set)

    def _plan(self, stack: ExitStack) -> Plan:
        source = self.tasks
        if isinstance(source, str | os.PathLike):
            tasks = stack.enter_context(Tasks.from_path(source))
        else:
            tasks = stack.enter_context(Tasks.from_rows(source, "tasks"))
        return plan_rollouts(tasks, self.routing, expansion=self.expansion, settings=self.settings)

    @property
    def _title(self) -> str:
        names = dict.fromkeys(target.agent or target.environment_server for target in self.routing.targets)
        return f"{self.settings['environment']} × {', '.join(names)}"


def patience(run_timeout: float, concurrency: int, slots: int) -> float:
    """Seconds that a ``/run`` may take when ``concurrency`` rollouts wait for ``slots`` of ``run_timeout`` seconds."""
    return run_timeout * math.ceil(concurrency / slots) + 60.0
