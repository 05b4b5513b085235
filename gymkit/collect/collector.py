"""The collector: sends every planned rollout to ``/run``, keeps what comes back, and never ends because one failed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gymkit.collect.evidence import Evidence
from gymkit.collect.garbage import seldom
from gymkit.collect.metrics import write_metrics
from gymkit.collect.outcome import Cause, Outcome, bounds_of_mean
from gymkit.collect.plan import Plan
from gymkit.collect.progress import Key, Progress
from gymkit.collect.reply import failure_of, request_of, row_of, stamped
from gymkit.collect.resume import Past, attempt_cap, count_result, key_of, look_back
from gymkit.collect.store import Store
from gymkit.errors import ConfigError, IncompleteRun, StoreError
from gymkit.servers.route import Reply, Route
from gymkit.wire.rollouts import sink

log = logging.getLogger("gymkit")

ROLLOUT_TIMEOUT_SECS: Final = 21_600.0
"""Seconds that one ``/run`` may take by default, the wait for a slot included: what NeMo Gym gives an episode."""

_START_TOGETHER: Final = 16
"""Rollouts that start in one turn of the loop: 1,000 at once would send nothing before all of them are seeded."""

GRACE_SECS: Final = 5.0
"""Seconds that rollouts in flight get to end when a run is stopped."""

_EXAMPLE: Final = 300  # characters


async def collect(
    plan: Plan,
    store: Store,
    routes: Mapping[str, Route],
    *,
    concurrency: int = 32,
    resume: bool = False,
    again: frozenset[Key] | None = None,
    rollout_timeout: float = ROLLOUT_TIMEOUT_SECS,
    aggregate: bool = True,
    require_complete: bool = False,
    evidence: Evidence | None = None,
    progress: Progress | None = None,
    stop: asyncio.Event | None = None,
) -> Outcome:
    """Run the rollouts of ``plan`` and write them into the open ``store``.

    ``routes`` has the plan's environment servers by name.
    ``concurrency`` rollouts are in flight at once, each bounded by ``rollout_timeout`` seconds. ``resume`` goes on with
    what is on disk: rollouts with a result, with a terminal failure or without attempts left are not run; with
    ``again``, the rollouts named there are run again, results or not, and no others. ``evidence`` puts on each row what
    model servers recorded and agents observed. Setting
    ``stop``, or cancelling, cuts what is in flight; the cut rollouts leave no row and a resume runs them.
    Raises ResumeMismatch, StoreError (the disk), TooManyMasked where ``evidence`` has a bound, and with
    ``require_complete`` IncompleteRun once all is written.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency must be at least 1, not {concurrency}")
    progress = progress or Progress()
    past = _start(plan, store, progress, again, resume=resume)
    run = _Run(plan, store, routes, progress, past, rollout_timeout, stop or asyncio.Event(), evidence)
    progress.begin(past.total)
    try:
        with seldom():
            stopped = await run.dispatch(concurrency)
        if aggregate and not stopped:
            await write_metrics(store, plan.routing.targets, routes)
    finally:
        progress.end()
        run.report()
    outcome = run.outcome(stopped)
    if require_complete and not outcome.complete:
        raise IncompleteRun(f"{outcome}. Not every rollout has a result, and all of them were required")
    return outcome


def _start(plan: Plan, store: Store, progress: Progress, again: frozenset[Key] | None, *, resume: bool) -> Past:
    """Lay the plan on disk, or take up the one that is there."""
    obstacle = store.obstacle() if resume else None
    if obstacle:
        log.warning("nothing to resume, starting anew: %s", obstacle)
    if obstacle and again is not None:
        raise StoreError(f"there is no run whose rollouts could be run again: {obstacle}")
    if not resume or obstacle:
        store.begin(plan.rows())
        return Past(plan.total)
    past = look_back(store, plan, progress, again)
    store.drop_metrics()
    return past


@dataclass(slots=True)
class _Run:
    """One run at work."""

    plan: Plan
    store: Store
    routes: Mapping[str, Route]
    progress: Progress
    past: Past
    timeout: float
    stop: asyncio.Event
    evidence: Evidence | None
    cap: int = field(default_factory=attempt_cap)
    closed: bool = False
    to_retry: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        gated = sum(not self.past.may_run(key, self.cap) for key in self.past.attempts)
        self.progress.failed += gated
        self.to_retry = len(self.past.attempts) - gated

    async def dispatch(self, concurrency: int) -> bool:
        """Keep ``concurrency`` rollouts in flight until all are done or a stop; says whether that left some undone."""
        pending = self._pending()
        count = max(1, min(concurrency, self.past.total))
        workers = [asyncio.create_task(self._work(pending, place // _START_TOGETHER)) for place in range(count)]
        everyone = asyncio.create_task(_finish(workers))
        stopping = asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait({everyone, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if everyone.done():
                await everyone
            return self.stop.is_set() and self.progress.done < self.past.total
        finally:
            self.closed = True
            stopping.cancel()
            everyone.cancel()
            await _cut(workers)

    def _pending(self) -> Iterator[tuple[Key, dict[str, Any]]]:
        """The rollouts to run, read from the plan on disk as they are needed."""
        past, cap = self.past, self.cap
        for line in self.store.planned():
            row = line.row
            key = key_of(row)
            if key is None or not past.may_run(key, cap):
                continue
            if attempt := past.attempts.get(key, 0):
                row["_ng_attempt_index"] = attempt
            yield key, row

    async def _work(self, pending: Iterator[tuple[Key, dict[str, Any]]], turns: int) -> None:
        for _ in range(turns):  # the first requests leave while the last rollouts are still being seeded
            await asyncio.sleep(0)
        for key, row in pending:
            if self.closed or self.stop.is_set():
                return
            self.progress.sent(key)
            try:
                await self._roll(key, row)
            finally:
                self.progress.returned(key)
            await asyncio.sleep(0)  # an app in this process may answer without ever waiting: let the others in

    async def _roll(self, key: Key, row: dict[str, Any]) -> None:
        records = self.evidence.begin(row) if self.evidence is not None else None
        started_at, began = time.time(), time.perf_counter()
        result = await self._ask(row)
        seconds = time.perf_counter() - began
        if self.evidence is not None and records is not None:
            await self.evidence.add(records, row, result, seconds)
        if self.closed:  # the run has been counted without it
            return
        try:
            self._keep(key, stamped(row, result, self.plan, started_at, seconds))
        except ValueError as error:  # JSON that can be read but not written: nested too deeply
            self._keep(key, stamped(row, failure_of(row, error, None), self.plan, started_at, seconds))
        if self.evidence is not None:
            self.evidence.tokens.check()

    async def _ask(self, row: dict[str, Any]) -> dict[str, Any]:
        """What ``/run`` says of a rollout, or a failure row: nothing that goes wrong there ends the run."""
        reply: Reply | None = None
        try:
            route = self.routes[self.plan.target_of(row).environment_server]
            reply = await route.post("/run", request_of(row), timeout=self.timeout, knob="rollout_timeout")
            return row_of(row, reply)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return failure_of(row, error, reply)  # the app in this process cancelled itself, nobody cancelled us
        except Exception as error:  # noqa: BLE001 - a failed rollout is data, whatever failed
            return failure_of(row, error, reply)

    def _keep(self, key: Key, row: dict[str, Any]) -> None:
        """Write a row where it belongs and count it."""
        tried = key in self.past.attempts
        match sink(row):
            case "main":
                self.store.append_result(row)
                count_result(self.progress, row)
            case "failures":
                self.store.append_failure(row)
                self.progress.failed += 1
                self._blame(row)
            case "none" if tried:
                self.progress.failed += 1
            case "none":
                self.progress.unscored += 1
        self.to_retry -= tried

    def _blame(self, row: Mapping[str, Any]) -> None:
        """Count a failure by its cause; the first of a cause is logged as it happens."""
        cause = str(row.get("failure_kind") or row["_ng_failure_class"])
        self.causes[cause] += 1
        if cause not in self.examples:
            named = ("_ng_failure_message", "error", "failure_reason", "_ng_failure_class")
            told = next(row[name] for name in named if row.get(name))
            message = self.examples[cause] = " ".join(str(told).split())[:_EXAMPLE]
            place = f"task {row['_ng_task_index']}, rollout {row['_ng_rollout_index']}"
            log.warning("%s failed (%s): %s", place, cause, message)

    def report(self) -> None:
        """Log one line for each cause that struck more than once."""
        for cause, count in self.causes.most_common():
            if count > 1:
                log.warning("%d rollouts failed (%s), see %s", count, cause, self.store.paths.failures)

    def outcome(self, stopped: bool) -> Outcome:
        """The run in numbers."""
        progress, total = self.progress, self.past.total
        within = progress.reward_min >= 0 and progress.reward_max <= 1
        failed = progress.failed + self.to_retry
        return Outcome(
            output=self.store.paths.rollouts,
            run=self.plan.run,
            expected=total,
            scored=progress.scored,
            masked=progress.masked,
            failed=failed,
            missing=total - progress.scored - progress.masked - failed,
            mean=progress.mean_reward,
            bounds=bounds_of_mean(progress.reward_sum, progress.scored, total) if within else None,
            causes=tuple(Cause(kind, count, self.examples[kind]) for kind, count in self.causes.most_common()),
            seconds=progress.seconds,
            stopped=stopped,
        )


async def _finish(workers: list[asyncio.Task[None]]) -> None:
    """Wait for all workers. Raises what the first one to break raised."""
    done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    for worker in done:
        worker.result()


async def _cut(workers: list[asyncio.Task[None]]) -> None:
    """Cancel what is in flight and wait for it, but not for long."""
    for worker in workers:
        worker.cancel()
    done, left = await asyncio.wait(workers, timeout=GRACE_SECS)
    for worker in done:
        if not worker.cancelled():
            worker.exception()  # the first has been raised; asyncio would report the others as forgotten
    if left:
        log.warning("%d rollouts did not let go within %g s and were left behind", len(left), GRACE_SECS)
