"""One row per planned rollout: how it ended, and what it scored.

The mean of ``reward`` is the mean over the scored rollouts: masked, failed and missing ones have no number there.
Steps, tool calls and tokens are those of whoever is evaluated: in an episode with a simulated user, the assistant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, get_args

import msgspec
import pandas as pd
from pandas.api.extensions import ExtensionArray

from gymkit.frames import assistant
from gymkit.frames.cells import MOMENT, flag, integer, number
from gymkit.frames.column import Builder, Column, array
from gymkit.frames.items import CALL
from gymkit.frames.lines import Place
from gymkit.frames.records import Key, Records
from gymkit.frames.rows import ExecutedCall, ItemKind, Ours, Planned, Row, Usage
from gymkit.frames.text import storable
from gymkit.wire.rollouts import TerminationReason

STATUSES: Final = ("scored", "masked", "failed", "missing")
"""What can have become of a planned rollout."""

REASONS: Final[tuple[str, ...]] = get_args(TerminationReason)
"""Why the loop of a rollout can have ended."""

COMPONENT: Final = "reward."
"""Prefix of a column that holds one component of the reward."""


class Outcome(msgspec.Struct, gc=False):
    """A planned rollout, and the row that tells what became of it: its result, or else its last failed attempt."""

    key: Key
    """Task and rollout index."""
    status: str
    """One of ``STATUSES``."""
    plan: Planned
    """The row of the plan."""
    row: Row
    """The row that tells; empty when there is none."""
    attempt: int | None
    """Number of the attempt that the row is of."""
    kind: Any
    """The failure's kind."""
    ours: Ours
    """What gymkit added to the row."""
    steps: Any
    """Calls of the agent."""
    calls: Sequence[ExecutedCall] | None
    """The calls that gymkit executed, None when that is not known."""
    usage: Usage
    """The tokens of the result."""
    items: Sequence[ItemKind] | None
    """The items of the result."""


_KIND: Final = attrgetter("type")
_MASKED: Final = {"scored": False, "masked": True}
_NO_PLAN: Final = Planned()
_NO_ROW: Final = Row()
_NOT_OURS: Final = Ours()
_NO_USAGE: Final = Usage()


def _missing(key: Key, plan: Planned) -> Outcome:
    return Outcome(key, "missing", plan, _NO_ROW, None, None, _NOT_OURS, None, None, _NO_USAGE, None)


def _failed(key: Key, plan: Planned, row: Row) -> Outcome:
    # The response of a failed attempt is a placeholder: nothing is counted in it.
    ours = row.gymkit or _NOT_OURS
    attempt = integer(row.attempt) or 0
    return Outcome(key, "failed", plan, row, attempt, row.failure_kind, ours, ours.steps, ours.calls, _NO_USAGE, None)


def _finished(key: Key, plan: Planned, row: Row) -> Outcome:
    status, kind = "masked", row.failure_kind
    if not flag(row.mask_sample):
        scored = number(row.reward) is not None
        status, kind = ("scored", kind) if scored else ("missing", kind or "no_reward")
    ours = row.gymkit or _NOT_OURS
    response = row.response if row.response and row.usersim_result is None else assistant.outline(row)
    attempt, usage = integer(row.attempt) or 0, response.usage or _NO_USAGE
    steps = assistant.steps(row) if ours.steps is None else ours.steps
    return Outcome(key, status, plan, row, attempt, kind, ours, steps, ours.calls, usage, response.output)


def task_id(row: Planned) -> Any:
    """Return the name that ``row`` gives its task, None when it gives none."""
    named = row.task_id
    if row.task_name is not None and row.task_name.task_id is not None:
        named = row.task_name.task_id
    elif named is None:
        named = row.instance_id if row.problem_id is None else row.problem_id
    return named.get("task_id") if isinstance(named, dict) else named


def _task(outcome: Outcome) -> Any:
    name = task_id(outcome.plan)
    name = task_id(outcome.row) if name is None else name
    return str(outcome.key[0]) if name is None else name


def _agent(outcome: Outcome) -> Any:
    ref = outcome.row.agent_ref or outcome.plan.agent_ref
    return ref and ref.name


def _run(outcome: Outcome) -> Any:
    ours = outcome.row.gymkit or outcome.plan.gymkit
    return ours and ours.run


def _function_calls(outcome: Outcome) -> int | None:
    if outcome.status == "failed":  # without a result, what is known are the calls that were executed
        return None if outcome.calls is None else len(outcome.calls)
    return None if outcome.items is None else list(map(_KIND, outcome.items)).count(CALL)


def _calls_with(error: str) -> Callable[[Outcome], int | None]:
    def count(outcome: Outcome) -> int | None:
        return None if outcome.calls is None else len([call for call in outcome.calls if call.error == error])

    return count


COLUMNS: Final[tuple[Column[Outcome], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that counts; NA without any"),
    Column("task_id", "string", _task, "name of the task; its number where it has none"),
    Column("agent", "string", _agent, "name of the agent"),
    Column("environment", "string", lambda it: it.row.environment or it.plan.environment, "environment server"),
    Column("status", "category", lambda it: it.status, "what became of the rollout", STATUSES),
    Column("reward", "Float64", lambda it: it.row.reward if it.status == "scored" else None, "NA unless scored"),
    Column(
        "mask_sample",
        "boolean",
        lambda it: _MASKED.get(it.status),
        "whether the reward is no measurement; NA without one",
    ),
    Column("failure_kind", "category", lambda it: it.kind, "kind of failure, by the shared vocabulary"),
    Column("termination_reason", "category", lambda it: it.ours.termination_reason, "why the loop ended", REASONS),
    Column("steps", "Int64", lambda it: it.steps, "calls of the agent: of the assistant, with a simulated user"),
    Column(
        "tool_calls",
        "Int64",
        _function_calls,
        "function calls in the result, whoever executed them; of a failed rollout, those that gymkit executed",
    ),
    Column("undeclared_calls", "Int64", _calls_with("undeclared"), "calls of a tool that the task does not offer"),
    Column("malformed_calls", "Int64", _calls_with("malformed"), "calls whose arguments are not a JSON object"),
    Column("failed_calls", "Int64", _calls_with("failed"), "calls that the environment answered with an error"),
    Column("input_tokens", "Int64", lambda it: it.usage.input_tokens, "tokens that the agent read, NA if not reported"),
    Column("output_tokens", "Int64", lambda it: it.usage.output_tokens, "tokens that it wrote, NA if not reported"),
    Column("total_tokens", "Int64", lambda it: it.usage.total_tokens, "both, NA if not reported"),
    Column("seconds", "Float64", lambda it: it.ours.seconds, "wall clock of the attempt"),
    Column("started_at", MOMENT, lambda it: it.ours.started_at, "when the collector sent it"),
    Column("run", "string", _run, "fingerprint of the run's configuration"),
)
"""The columns; behind them comes one Float64 column ``reward.<component>`` for each reward component seen."""


def frame(records: Records) -> pd.DataFrame:
    """Return the rewards of a run, by task and rollout index: ``COLUMNS``, then the reward components by name.

    A rollout that is in none but the plan is ``missing``; without a plan on disk, only the rollouts seen are there.
    """
    builder = Builder(COLUMNS)
    positions: dict[Key, int] = {}
    components: dict[str, dict[int, Any]] = {}
    rows = 0
    for outcome in _outcomes(records):
        builder.add(outcome)
        positions[outcome.key] = rows
        if outcome.status == "scored" and isinstance(outcome.row.reward_components, dict):
            for name, value in outcome.row.reward_components.items():
                components.setdefault(name, {})[rows] = value
        rows += 1
    extra = {COMPONENT + storable(name): _sparse(components[name], rows) for name in sorted(components)}
    # Of a rollout that came twice, the position is that of the last row.
    return builder.frame(extra).iloc[[positions[key] for key in sorted(positions)]].reset_index(drop=True)


def _outcomes(records: Records) -> Iterator[Outcome]:
    """Yield an outcome for each row of the main file, then one for each rollout that is only in the other files."""
    plan = {key: row for key, row, _ in records.inputs(Planned)}
    failures = {key: row for key, row, _ in records.failures(Row)}
    rest = set(plan) | set(failures)
    unplanned: list[Place] = []
    for key, row, place in records.rollouts(Row):
        rest.discard(key)
        if plan and key not in plan:
            unplanned.append(place)
        yield _finished(key, plan.get(key, _NO_PLAN), row)
    if unplanned:
        count = "1 line is" if len(unplanned) == 1 else f"{len(unplanned)} lines from here on are"
        records.note(unplanned[0], f"{count} of a rollout that {records.inputs_path.name} does not plan; kept")
    for key in rest:
        planned = plan.get(key, _NO_PLAN)
        yield _failed(key, planned, failures[key]) if key in failures else _missing(key, planned)


def _sparse(values: Mapping[int, Any], rows: int) -> ExtensionArray:
    return array("Float64", [values.get(row) for row in range(rows)])
