"""One row per time that a model spoke in an episode with simulated users."""

from __future__ import annotations

from typing import Final, NamedTuple

import pandas as pd

from gymkit.frames.cells import integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.conversation_rows import Invocation, Replied, Tokens
from gymkit.frames.conversation_rows import InvocationRow as Row
from gymkit.frames.records import Key, Records


class Spoke(NamedTuple):
    """One invocation."""

    key: Key
    """The rollout."""
    attempt: int
    """The attempt that gave the result."""
    it: Invocation
    """The invocation."""
    reply: Replied
    """What came."""
    tokens: Tokens
    """Its tokens."""


_ROLES: Final = ("user", "assistant", "judge", "summary", "tool_simulation")

COLUMNS: Final[tuple[Column[Spoke], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("sequence", "Int64", lambda it: it.it.sequence, "its place in the episode, from 0"),
    Column("role", "category", lambda it: it.it.role, "who spoke", _ROLES),
    Column("model", "string", lambda it: it.reply.model, "name of the model that answered"),
    Column("input_tokens", "Int64", lambda it: it.tokens.input_tokens, "tokens read; NA where they were not told"),
    Column("output_tokens", "Int64", lambda it: it.tokens.output_tokens, "tokens written"),
    Column("seconds", "Float64", lambda it: it.it.seconds, "wall clock; NA in rows of NeMo Gym"),
    Column("termination_reason", "category", lambda it: it.it.termination_reason, "how it ended, on the last word"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return who spoke when, by task, rollout and sequence: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for key, row, _ in records.results(Row):
        attempt = integer(row.attempt) or 0
        for each in row.invocations or ():
            reply = each.response or Replied()
            builder.add(Spoke(key, attempt, each, reply, reply.usage or Tokens()))
    return builder.frame()
