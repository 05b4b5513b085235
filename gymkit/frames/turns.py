"""One row per turn of an agent: what stood before the model, and what it answered."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pandas as pd

from gymkit.frames.cells import MOMENT, integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.evidence_rows import Turn, TurnRow
from gymkit.frames.records import Key, Records


class Taken(NamedTuple):
    """One turn."""

    key: Key
    """The rollout."""
    attempt: int
    """The attempt that gave the result."""
    it: Turn
    """The turn."""


def _call(taken: Taken) -> Any:
    return next((reference.model_call_id for reference in taken.it.model_calls or ()), None)


COLUMNS: Final[tuple[Column[Taken], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("invocation_id", "string", lambda it: it.it.invocation_id, "whose turn"),
    Column("turn", "Int64", lambda it: it.it.turn_no, "its number within the invocation, from 1"),
    Column("question", "string", lambda it: it.it.question, "the last thing the model was given"),
    Column("answer", "string", lambda it: it.it.answer, "what it said; NA if it only asked for tools"),
    Column("reasoning", "string", lambda it: it.it.reasoning_content, "what it thought"),
    Column("tool_calls", "Int64", lambda it: it.it.step_count, "tool calls of the invocation so far"),
    Column("resolved", "boolean", lambda it: it.it.resolved, "whether the task was solved by then; NA: nobody looked"),
    Column("model_calls", "Int64", lambda it: len(it.it.model_calls or ()), "model calls that made it"),
    Column("model_call_id", "string", _call, "the first of them, as in model_calls"),
    Column("started_at", MOMENT, lambda it: it.it.timestamp, "when it began"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return the turns of every result, by task, rollout and order: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for key, row, place in records.results(TurnRow):
        for turn in (row.trajectory and row.trajectory.turns) or ():
            builder.add(Taken(key, integer(row.attempt) or 0, turn), place.size)
    return builder.frame()
