"""One row per activation: of an agent that was observed, or of a model in an episode with simulated users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import pandas as pd

from gymkit.frames.cells import integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.conversation_rows import Invocation, Replied, Tokens
from gymkit.frames.conversation_rows import InvocationRow as Spoken
from gymkit.frames.evidence_rows import Call, Called, Invoked, Metadata, Stats
from gymkit.frames.model_calls import seconds
from gymkit.frames.records import Key, Records

AGENT: Final = "agent"


class Row(Spoken, gc=False):
    """A result with both kinds of record."""

    trajectory: Called | None = msgspec.field(name="ng_trajectory", default=None)
    """The evidence."""


class Active(NamedTuple):
    """One activation, whichever kind of record tells of it."""

    key: Key
    """The rollout."""
    attempt: int
    """The attempt that gave the result."""
    sequence: Any
    """Its place in the rollout."""
    role: Any
    """Who was active."""
    model: Any = None
    """The model that answered."""
    input_tokens: Any = None
    """Tokens read."""
    output_tokens: Any = None
    """Tokens written."""
    seconds: Any = None
    """Wall clock."""
    termination_reason: Any = None
    """How the conversation ended."""
    invocation_id: Any = None
    """Its name."""
    parent_invocation_id: Any = None
    """Who began it."""
    status: Any = None
    """How it ended."""
    error: Any = None
    """What ended it."""
    model_calls: int | None = None
    """Captured calls."""
    tool_calls: int | None = None
    """Observed tool calls."""


_ROLES: Final = ("user", "assistant", "judge", "summary", "tool_simulation", AGENT)
_STATUSES: Final = ("completed", "failed", "incomplete", "unknown")

COLUMNS: Final[tuple[Column[Active], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("sequence", "Int64", lambda it: it.sequence, "its place in the episode, from 0"),
    Column("role", "category", lambda it: it.role, "who was active", _ROLES),
    Column("model", "string", lambda it: it.model, "name of the model that answered; NA where several did"),
    Column("input_tokens", "Int64", lambda it: it.input_tokens, "tokens read; NA where they were not all told"),
    Column("output_tokens", "Int64", lambda it: it.output_tokens, "tokens written"),
    Column("seconds", "Float64", lambda it: it.seconds, "wall clock; NA in rows of NeMo Gym"),
    Column("termination_reason", "category", lambda it: it.termination_reason, "how it ended, on the last word"),
    Column("invocation_id", "string", lambda it: it.invocation_id, "its name, as in model_calls and turns"),
    Column("parent_invocation_id", "string", lambda it: it.parent_invocation_id, "the one that began it"),
    Column("status", "category", lambda it: it.status, "how it ended, as the agent says", _STATUSES),
    Column("error", "category", lambda it: it.error, "what ended it, where it failed"),
    Column("model_calls", "Int64", lambda it: it.model_calls, "captured calls that belong to it"),
    Column("tool_calls", "Int64", lambda it: it.tool_calls, "tool calls that were observed"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return who was active when, by task, rollout and sequence: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for key, row, _ in records.results(Row):
        attempt = integer(row.attempt) or 0
        for each in row.invocations or ():
            builder.add(_spoke(key, attempt, each))
        if row.trajectory is not None and not row.invocations:
            for active in _agents(key, attempt, row.trajectory):
                builder.add(active)
    return builder.frame()


def _spoke(key: Key, attempt: int, it: Invocation) -> Active:
    reply = it.response or Replied()
    tokens = reply.usage or Tokens()
    told = (reply.model, tokens.input_tokens, tokens.output_tokens, it.seconds, it.termination_reason)
    return Active(key, attempt, it.sequence, it.role, *told)


def _agents(key: Key, attempt: int, told: Called) -> Iterator[Active]:
    calls = {call.model_call_id: call for call in told.model_calls or () if isinstance(call.model_call_id, str)}
    tools = Counter(str(tool.invocation_id) for tool in told.tool_calls or ())
    for sequence, it in enumerate(told.invocations or ()):
        owned = _owned(it, calls)
        models = {(call.response_metadata or Metadata()).model for call in owned}
        yield Active(
            key,
            attempt,
            sequence,
            AGENT,
            model=models.pop() if len(models) == 1 else None,
            input_tokens=_sum(owned, "prompt_tokens"),
            output_tokens=_sum(owned, "completion_tokens"),
            seconds=seconds(it.duration_ms),
            invocation_id=it.invocation_id,
            parent_invocation_id=it.parent_invocation_id,
            status=it.status,
            error=it.error_type,
            model_calls=len(owned),
            tool_calls=tools[str(it.invocation_id)],
        )


def _owned(it: Invoked, calls: Mapping[str, Call]) -> list[Call]:
    names = [reference.model_call_id for reference in it.model_calls or ()]
    return [calls[name] for name in names if isinstance(name, str) and name in calls]


def _sum(calls: list[Call], name: str) -> int | None:
    """The sum over all calls; None where one of them did not say."""
    counts = [integer(getattr(call.token_stats or Stats(), name)) for call in calls]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
