"""One row per message of a conversation with a simulated user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pandas as pd

from gymkit.frames.cells import integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.conversation_rows import TalkRow
from gymkit.frames.messages import Call
from gymkit.frames.records import Key, Records


class Said(NamedTuple):
    """One message, or one tool call of it."""

    key: Key
    """The rollout."""
    attempt: int
    """The attempt that gave the result."""
    position: int
    """Position in the conversation."""
    turn: int
    """Turn of the assistant that it belongs to, from 1."""
    role: Any
    """Who."""
    text: Any
    """What was said."""
    call: Call | None = None
    """What was asked of a tool."""
    answers: Any = None
    """Of a tool's output: the call."""


COLUMNS: Final[tuple[Column[Said], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("message_index", "Int64", lambda it: it.position, "position in the conversation"),
    Column("turn", "Int64", lambda it: it.turn, "turn that it belongs to, from 1: a user's message begins one"),
    Column("role", "category", lambda it: it.role, "who", ("user", "assistant", "tool")),
    Column("text", "string", lambda it: it.text, "what was said; NA for a call without a word"),
    Column("tool", "string", lambda it: it.call and it.call.function and it.call.function.name, "the tool called"),
    Column(
        "arguments", "string", lambda it: it.call and it.call.function and it.call.function.arguments, "its arguments"
    ),
    Column("call_id", "string", lambda it: it.call.id if it.call else it.answers, "what pairs a call with its result"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return the conversations of a run, by task, rollout and position: ``COLUMNS``.

    A message that calls several tools has a row for each call, the first of them with its text.
    """
    builder = Builder(COLUMNS)
    for key, row, place in records.results(TalkRow):
        for said in _said(key, row):
            builder.add(said, place.size // 50)
    return builder.frame()


def _said(key: Key, row: TalkRow) -> Iterator[Said]:
    messages = (row.usersim_result and row.usersim_result.conversation_messages) or []
    attempt, turn = integer(row.attempt) or 0, 0
    for index, message in enumerate(messages):
        turn += message.role == "user"
        base = Said(
            key, attempt, index, max(turn, 1), message.role, message.content or None, None, message.tool_call_id
        )
        calls = message.tool_calls or []
        if not calls:
            yield base
        for number, call in enumerate(calls):
            yield base._replace(call=call, text=base.text if number == 0 else None)
