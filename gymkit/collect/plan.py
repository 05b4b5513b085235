"""From task rows to planned rollouts: everything is read and checked first, then written out row by row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gymkit.collect.checks import extra_body, params_problems, row_problems
from gymkit.collect.fingerprint import fingerprint
from gymkit.collect.routing import Routing, Target
from gymkit.collect.selection import Selection, select
from gymkit.collect.tasks import Tasks
from gymkit.errors import ConfigError, InputError
from gymkit.servers.skills import SkillsRef
from gymkit.wire import codec
from gymkit.wire.tasks import is_materialized, strip_result_fields

_STAMPS = frozenset({"agent_ref", "gymkit"})


@dataclass(frozen=True, slots=True)
class Expansion:
    """How rollouts are made of task rows. Raises ConfigError for what makes no sense."""

    limit: int | None = None
    """Only the first so many task rows."""
    repeats: int = 1
    """Rollouts of each row."""
    add_seed: bool = False
    """Whether the rollout index goes along as a sampling seed (``metadata.extra_body``)."""
    interleave: bool = False
    """True: every task once, then every task again; False: all repeats of a task in a row."""
    responses_create_params: Mapping[str, Any] = field(default_factory=dict)
    """Laid over each row's own parameters, key by key."""
    skills: SkillsRef | None = None
    """The skills that agents are given; stamped on every row."""

    def __post_init__(self) -> None:
        for name, value in (("limit", self.limit), ("num_repeats", self.repeats)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be at least 1, not {value}")
        if problems := params_problems({"input": "", **self.responses_create_params}):
            raise ConfigError(f"the overrides cannot be laid over the task rows: {'; '.join(problems)}")


class Plan:
    """The rollouts of a run. ``rows`` yields them one by one, as often as asked; only positions are in memory."""

    def __init__(
        self, selection: Selection, routing: Routing, expansion: Expansion, settings: Mapping[str, Any] | None = None
    ) -> None:
        self.routing = routing
        self._selection = selection
        self._expansion = expansion
        self.config: dict[str, Any] = {
            **(settings or {}),
            **routing.settings(),
            "num_repeats": expansion.repeats,
            "num_repeats_add_seed": expansion.add_seed,
            "responses_create_params": dict(expansion.responses_create_params),
            **({"skills": expansion.skills.hash} if expansion.skills else {}),
            "tasks": {"rows": len(selection), "digest": selection.digest},
        }
        """What makes this run this run: the caller's settings, how rows are expanded, a digest of the rows."""
        self.run = fingerprint(self.config)
        """The fingerprint of ``config``, 12 hex digits."""
        self.total = len(selection) * expansion.repeats
        """How many rollouts are planned."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the planned rollouts in the order of dispatch; the first also carries the configuration."""
        mark: dict[str, Any] = {"run": self.run, "config": self.config}
        for position, rollout_index in self._order():
            row = self._task(position, rollout_index)
            target = self.target_of(row)
            row.pop("agent_ref", None)
            if target.agent is not None:
                row["agent_ref"] = {"name": target.agent}
            row["_ng_task_index"] = self._selection.indexes[position]
            row["_ng_rollout_index"] = rollout_index
            row["_ng_environment_server"] = target.environment_server
            row["gymkit"] = mark
            mark = {"run": self.run}
            yield row

    def target_of(self, row: Mapping[str, Any]) -> Target:
        """The environment server for a planned row."""
        target = self.routing.of(row)
        if target is None:
            raise InputError([f"no environment server runs the row of task {row.get('_ng_task_index')}"])
        return target

    def first_change(self, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Where the first task row stands that differs from the one in ``rows``, an earlier plan; None if none does."""
        before = (row for row in rows if row.get("_ng_rollout_index") == 0)
        for position, copy in enumerate(self._selection.copies):
            if copy:
                continue
            row = next(before, {})
            if codec.dumps_sorted(_bare(self._task(position, 0))) != codec.dumps_sorted(_bare(row)):
                return self._selection.place(position)
        return None

    def _order(self) -> Iterator[tuple[int, int]]:
        """Yield (position of the task row, rollout index); rollout indexes go on counting over copies of a row."""
        repeats, copies = self._expansion.repeats, self._selection.copies
        if not self._expansion.interleave:
            for position, copy in enumerate(copies):
                for repeat in range(repeats):
                    yield position, copy * repeats + repeat
            return
        rounds = [array("q") for _ in range(max(copies, default=-1) + 1)]
        for position, copy in enumerate(copies):
            rounds[copy].append(position)
        for copy, positions in enumerate(rounds):
            for repeat in range(repeats):
                for position in positions:
                    yield position, copy * repeats + repeat

    def _task(self, position: int, rollout_index: int) -> dict[str, Any]:
        row = self._selection.task(position)
        if overrides := self._expansion.responses_create_params:
            row["responses_create_params"] = {**row["responses_create_params"], **overrides}
        if self._expansion.add_seed:
            _add_seed(row, rollout_index)
        if self._expansion.skills:
            row["skills_ref"] = self._expansion.skills.model_dump()
        return row


def plan_rollouts(
    tasks: Tasks,
    routing: Routing,
    *,
    expansion: Expansion | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Plan:
    """Read and check every selected task row and return the plan. Nothing is written and nothing is started.

    ``settings`` is the configuration that results depend on (agent, environment): a resume with others is refused.
    ``routing`` says who runs which row. Raises InputError with one sentence for each problem:
    where the row stands, the field, the reason. ``tasks`` stays open as long as the plan is used.
    """
    expansion = expansion or Expansion()
    rewritten = expansion.add_seed or bool(expansion.responses_create_params)
    check = partial(_row_problems, routing=routing, expansion=expansion, rewritten=rewritten)
    return Plan(select(tasks, expansion.limit, check), routing, expansion, settings)


def _row_problems(row: Mapping[str, Any], *, routing: Routing, expansion: Expansion, rewritten: bool) -> Iterator[str]:
    if rewritten and is_materialized(row):
        yield "responses_create_params: a row in materialized form takes neither overrides nor seeds"
    if expansion.skills and is_materialized(row):
        yield "skills: a row in materialized form takes none"
    yield from routing.problems(row)
    target = routing.of(row)
    check_task = target.check_task if target else None
    yield from row_problems(row, check_task, add_seed=expansion.add_seed)


def _add_seed(row: dict[str, Any], seed: int) -> None:
    params = row["responses_create_params"]
    settings = codec.dumps({**extra_body(params), "seed": seed}).decode()
    metadata = {**(params.get("metadata") or {}), "extra_body": settings}
    row["responses_create_params"] = {**params, "metadata": metadata}


def _bare(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in strip_result_fields(row).items() if key not in _STAMPS}
