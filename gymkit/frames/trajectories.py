"""One row per item of a rollout's conversation, in order, the task's own items first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pandas as pd

from gymkit.frames.column import Builder, Column
from gymkit.frames.items import Entry, item_text, kind, walk
from gymkit.frames.records import Key, Records
from gymkit.frames.rows import Transcript

ORIGINS: Final = ("task", "agent", "environment")
"""Where an item can have come from."""

COLUMNS: Final[tuple[Column[Entry], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("item_index", "Int64", lambda it: it.index, "position in the conversation, from 0"),
    Column("origin", "category", lambda it: it.origin, "who put the item there; NA if nobody says", ORIGINS),
    Column("step", "Int64", lambda it: it.step, "call of the service that it belongs to, from 1; NA if not known"),
    Column("kind", "category", lambda it: kind(it.item), "kind of item: message, function_call, reasoning ..."),
    Column("role", "category", lambda it: it.item.role, "of a message: who speaks"),
    Column("name", "string", lambda it: it.item.name, "of a call: the function"),
    Column("text", "string", lambda it: item_text(it.item), "what was said, or what a call returned"),
    Column("arguments", "string", lambda it: it.item.arguments, "of a call: the arguments as written"),
    Column("call_id", "string", lambda it: it.item.call_id, "what pairs a call with its output"),
    Column("executed", "boolean", lambda it: it.executed, "whether gymkit ran the call; NA if not known, or no call"),
)


def frame(records: Records, keys: Iterable[Key] | None = None) -> pd.DataFrame:
    """Return the conversations of ``keys`` (None: of every result), by task, rollout and item index: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for entry, size in walk(records.results(Transcript, keys)):
        builder.add(entry, size)
    return builder.frame()
