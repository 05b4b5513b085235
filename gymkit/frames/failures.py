"""One row per failed attempt: what went wrong, and whether it is worth another try."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from gymkit.frames.cells import MOMENT, flag, integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.records import Key, Records
from gymkit.frames.rows import FailureRow, Ours

Attempt = tuple[Key, FailureRow, Ours]


def _message(attempt: Attempt) -> Any:
    row = attempt[1]
    said = (row.error, row.message, row.failure_reason, row.judge_error)
    return next((words for words in said if words is not None), None)


COLUMNS: Final[tuple[Column[Attempt], ...]] = (
    Column("task_index", "Int64", lambda it: it[0][0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it[0][1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: integer(it[1].attempt) or 0, "number of the attempt"),
    Column("failure_class", "category", lambda it: it[1].failure_class, "who gave up: agent, collector, judge ..."),
    Column("failure_kind", "category", lambda it: it[1].failure_kind, "kind of failure, by the shared vocabulary"),
    Column("message", "string", _message, "what happened, in a sentence"),
    Column("terminal", "boolean", lambda it: bool(flag(it[1].terminal)), "whether a resume leaves it as it is"),
    Column("seconds", "Float64", lambda it: it[2].seconds, "wall clock of the attempt"),
    Column("started_at", MOMENT, lambda it: it[2].started_at, "when the collector sent it"),
    Column("run", "string", lambda it: it[2].run, "fingerprint of the run's configuration"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return the failed attempts of a run, by task, rollout and attempt: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for key, row, place in records.failures(FailureRow):
        builder.add((key, row, row.gymkit or Ours()), place.size)
    return builder.frame().sort_values(["task_index", "rollout_index", "attempt"], kind="stable", ignore_index=True)
