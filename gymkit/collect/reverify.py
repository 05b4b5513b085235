"""Stored rollouts scored again by a verifier that has changed: nothing is asked of the agent.

Only a verifier that needs nothing but task and response can do that (``GET /reverify_mode`` answers "stateless").
The new run has the plan of the old one and its failures, so that the two have the same denominators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.fingerprint import differences, fingerprint
from gymkit.collect.lines import decode, read_whole
from gymkit.collect.progress import Key, Progress
from gymkit.collect.reply import failure_of
from gymkit.collect.resume import count_result, key_of
from gymkit.collect.store import Store
from gymkit.errors import ConfigError, InvalidReply, ResumeMismatch, ServerError, StoreError
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.shipped import ENVIRONMENT_ALIASES
from gymkit.wire.rollouts import sink
from gymkit.wire.tasks import flat_task

Row = dict[str, Any]

JUDGED: Final = frozenset({"judge_failed", "judge_invalid"})
"""Failure classes of rollouts that only want a judge."""

UNSAFE: Final = "unsafe_"
"""How the name of a file begins whose rewards a verifier gave that may have needed more."""

TIMEOUT_SECS: Final = 1_800.0
"""Seconds that one ``/verify`` may take."""

_FAILED: Final = "reverify_failed"
_OF_THE_ROLLOUT: Final = ("deliverables_dir", "reference_ids")
"""What a verifier may need of the result beside the response."""
_STAMPS: Final = ("agent_ref", "task_source", "skills_ref")


class Stored(NamedTuple):
    """A stored rollout to score, and where its row lies."""

    key: Key
    path: Path
    offset: int


@dataclass(frozen=True, slots=True)
class Verifiers:
    """The resources servers that score."""

    routes: Mapping[str, Route]
    """How each is reached, by name."""
    of: Callable[[Mapping[str, Any]], str]
    """Which of them scores a planned row. Raises ConfigError."""
    names: Collection[str] = ()
    """What their environments are called, by every name; empty where that is not known."""

    @classmethod
    def only(cls, route: Route, names: Collection[str] = ()) -> Self:
        """One for every row, whose environment goes by ``names``."""
        return cls({route.name: route}, lambda _: route.name, names)


@dataclass(slots=True)
class Reverification:
    """One run to score again."""

    source: Artifacts
    """The run."""
    plan: Path
    """Its planned rollouts."""
    verifiers: Verifiers
    """Who scores."""
    limit: int | None = None
    """Only the first so many of the rollouts."""
    judge_failed_only: bool = False
    """True: only rollouts whose judge failed are scored; results stay as they are."""
    concurrency: int = 32
    """Calls of ``/verify`` in flight."""
    seeded: Collection[str] = ()
    """Servers that want a session seeded before they verify."""
    progress: Progress = field(default_factory=Progress)
    """How far it is."""
    _offsets: dict[Key, int] = field(default_factory=dict)
    _config: dict[str, Any] = field(default_factory=dict)
    _run: str = ""
    _stored: list[Stored] = field(default_factory=list)

    async def stateful(self) -> list[str]:
        """The servers that do not say they can score a stored response. Raises ServerError."""
        odd = []
        for name, route in self.verifiers.routes.items():
            reply = await route.get("/reverify_mode", timeout=30.0)
            if reply.status == 404 or reply.expect_ok().json() != "stateless":
                odd.append(name)
        return sorted(odd)

    async def collect(self, store: Store, *, resume: bool = False) -> None:
        """Score what was ``read`` and write it into the open ``store``; ``resume`` goes on with what is there.

        A verifier that fails costs a row in the failures sidecar. Raises StoreError, ConfigError and ResumeMismatch.
        """
        done = self._begin(store, resume)
        left = [stored for stored in self._stored if stored.key not in done]
        self.progress.begin(len(left))
        work = iter(left)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.concurrency, len(left))):
                    group.create_task(self._score_all(work, store))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            self.progress.end()

    def read(self) -> None:
        """Find the rollouts and their tasks, before anything is written. Raises StoreError."""
        if not self.plan.exists():
            raise StoreError(
                f"{self.plan} is not there, and a verifier needs the tasks as they were planned (--inputs)"
            )
        for line in read_whole(self.plan):
            self._config = self._config or (line.row.get("gymkit") or {}).get("config") or {}
            if (key := key_of(line.row)) is not None:
                self._offsets[key] = line.offset
        self._config = {**self._config, "reverified": self.source.rollouts.name}
        self._run = fingerprint(self._config)
        self._stored = self._chosen()

    def strangers(self) -> list[str]:
        """The environments of the run that was ``read`` which no verifier is of; empty where names are not known."""
        told, known = self._config.get("environment"), {_ours(name) for name in self.verifiers.names}
        named = told.split(", ") if known and isinstance(told, str) else []
        return [name for name in named if name and "://" not in name and _ours(name) not in known]

    def _chosen(self) -> list[Stored]:
        path = self.source.rollouts
        keyed = ((key_of(line.row), line.offset) for line in read_whole(path))
        found = {key: Stored(key, path, offset) for key, offset in keyed if key is not None}
        if self.judge_failed_only:
            found = self._unjudged(found.keys())
        if strange := [stored.key for stored in found.values() if stored.key not in self._offsets]:
            task, rollout = strange[0]
            raise StoreError(
                f"{path} has rollout {rollout} of task {task}, which {self.plan} does not plan: "
                "give the plan of this run (--inputs)"
            )
        return list(found.values())[: self.limit]

    def _unjudged(self, results: Collection[Key]) -> dict[Key, Stored]:
        """The rollouts without a result whose last attempt only wanted a judge."""
        path = self.source.failures
        last: dict[Key, tuple[Any, Stored]] = {}
        for line in read_whole(path) if path.exists() else ():
            if (key := key_of(line.row)) is not None and key not in results:
                last[key] = line.row.get("_ng_failure_class"), Stored(key, path, line.offset)
        return {key: stored for key, (sort, stored) in last.items() if sort in JUDGED}

    def _begin(self, store: Store, resume: bool) -> set[Key]:
        """Lay plan and failures of the old run, or take up what is there; returns what has a result already."""
        keys = {stored.key for stored in self._stored}
        if resume and not store.obstacle():
            store.repair()
            there = next(store.planned()).row.get("gymkit") or {}
            if there.get("run") != self._run:
                raise ResumeMismatch(str(store.paths.rollouts), list(differences(there.get("config"), self._config)))
            return {key for line in store.results() if (key := key_of(line.row)) is not None}
        part = self.limit is not None and not self.judge_failed_only
        store.begin(self._planned_rows(keys if part else None))
        for line in read_whole(self.source.failures) if self.source.failures.exists() and not part else ():
            if key_of(line.row) not in keys:
                store.append_failure(line.row)
        for line in read_whole(self.source.rollouts) if self.judge_failed_only else ():
            store.append_result(line.row)
        return set()

    def _planned_rows(self, keys: set[Key] | None) -> Iterator[Row]:
        mark: dict[str, Any] = {"run": self._run, "config": self._config}
        for line in read_whole(self.plan):
            if keys is None or key_of(line.row) in keys:
                yield {**line.row, "gymkit": mark}
                mark = {"run": self._run}

    async def _score_all(self, work: Iterator[Stored], store: Store) -> None:
        for stored in work:
            self.progress.sent(stored.key)
            try:
                row = await self._score(stored.key, _row_at(stored.path, stored.offset))
            finally:
                self.progress.returned(stored.key)
            if sink(row) == "main":
                store.append_result(row)
                count_result(self.progress, row)
            else:
                store.append_failure(row)
                self.progress.failed += 1
            await asyncio.sleep(0)  # a verifier in this process may answer without ever waiting

    async def _score(self, key: Key, before: Row) -> Row:
        planned = _row_at(self.plan, self._offsets[key])
        reply: Reply | None = None
        try:
            reply = await self._ask(self.verifiers.routes[self.verifiers.of(planned)], _task(planned), before)
            found = reply.expect_ok().json_object()
            if "reward" not in found:
                raise InvalidReply(f"{reply.url} answered without a reward", server=reply.server, url=reply.url)
        except ServerError as error:
            failed = failure_of(planned, error, reply) | {"_ng_failure_class": _FAILED, "failure_kind": "verify"}
            return self._stamped(failed, key, before)
        return self._stamped(found, key, before)

    async def _ask(self, route: Route, task: Row, before: Row) -> Reply:
        cookies = CookieJar()
        if route.name in self.seeded:
            seeded = await route.post("/seed_session", task, timeout=TIMEOUT_SECS, knob="the bound of a seed")
            cookies.take(seeded.expect_ok())
        kept: Row = {name: before[name] for name in _OF_THE_ROLLOUT if name in before}
        body = {**task, "response": before.get("response"), **kept}
        return await route.post("/verify", body, cookies=cookies, timeout=TIMEOUT_SECS, knob="the bound of a verifier")

    def _stamped(self, row: Row, key: Key, before: Row) -> Row:
        """The new verdict under the old rollout's stamps and facts."""
        row["_ng_task_index"], row["_ng_rollout_index"] = key
        row |= {name: before[name] for name in _STAMPS if name in before}
        for name in ("_ng_environment_server", "_ng_result_type", "_ng_attempt_index", "_ng_task_id"):
            if name in before:
                row[name] = before[name]
        facts = before.get("gymkit")
        told: Row = facts if isinstance(facts, dict) else {}
        row["gymkit"] = {**told, "run": self._run}
        return row


def _ours(name: str) -> str:
    """Our name for an environment that NeMo Gym calls ``name``."""
    return ENVIRONMENT_ALIASES.get(name, name)


def _row_at(path: Path, offset: int) -> Row:
    with path.open("rb") as file:
        file.seek(offset)
        return decode(file.readline().removeprefix(b"\xef\xbb\xbf"))


def _task(planned: Mapping[str, Any]) -> Row:
    """A planned row as a resources server takes it: flat, without our own object. Raises ConfigError."""
    row = {key: value for key, value in planned.items() if key not in ("gymkit", "task_id", "task_input")}
    inside = planned.get("task_input")
    if not isinstance(inside, Mapping):
        return {key: value for key, value in planned.items() if key != "gymkit"}
    try:
        return row | flat_task(inside)
    except ValueError as error:
        raise ConfigError(f"task {planned.get('_ng_task_index')} of the plan: {error}") from error
