"""One row per function call of a rollout: what was asked of the tools, and what came back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, get_args

import pandas as pd

from gymkit.frames.column import Builder, Column
from gymkit.frames.items import CALL, Entry, joined, walk
from gymkit.frames.records import Key, Records
from gymkit.frames.rows import Transcript
from gymkit.wire.rollouts import CallError

ERRORS: Final[tuple[str, ...]] = get_args(CallError)
"""How a call that gymkit ran can have gone wrong."""

COLUMNS: Final[tuple[Column[Entry], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("item_index", "Int64", lambda it: it.index, "position of the call in the conversation, as in trajectories"),
    Column("step", "Int64", lambda it: it.step, "call of the service that asked for it, from 1; NA if not known"),
    Column("name", "string", lambda it: it.item.name, "the function"),
    Column("arguments", "string", lambda it: it.item.arguments, "the arguments as written"),
    Column("call_id", "string", lambda it: it.item.call_id, "what pairs it with its output"),
    Column("output", "string", lambda it: it.answer and joined(it.answer.output), "what came back; NA if nothing did"),
    Column("executed", "boolean", lambda it: it.executed, "whether gymkit ran it; False: the agent did; NA: not known"),
    Column("error", "category", lambda it: it.call and it.call.error, "how it went wrong; NA if it did not", ERRORS),
    Column("seconds", "Float64", lambda it: it.call and it.call.seconds, "wall clock, of a call that gymkit ran"),
)


def frame(records: Records, keys: Iterable[Key] | None = None) -> pd.DataFrame:
    """Return the function calls of ``keys`` (None: of every result), by task, rollout and item index: ``COLUMNS``.

    Calls in the task's own items are no part of the rollout and not listed.
    """
    builder = Builder(COLUMNS)
    for entry, size in walk(records.results(Transcript, keys)):
        if entry.item.type == CALL and entry.origin == "agent":
            builder.add(entry, size)
    return builder.frame()
