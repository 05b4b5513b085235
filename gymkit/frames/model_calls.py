"""One row per captured call of a model: who called whom, what it came to, and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pandas as pd

from gymkit.frames.cells import MOMENT, integer, number
from gymkit.frames.column import Builder, Column
from gymkit.frames.evidence_rows import Call, Called, CallRow, Metadata, Stats
from gymkit.frames.records import Key, Records


class Asked(NamedTuple):
    """One call."""

    key: Key
    """The rollout."""
    attempt: int
    """The attempt that gave the result."""
    order: int
    """Order of recording."""
    it: Call
    """The call."""
    meta: Metadata
    """What it came to."""
    tokens: Stats
    """What it cost."""
    owner: Any
    """The invocation that it belongs to."""


def seconds(milliseconds: Any) -> float | None:
    """A duration in seconds; None for what is no number."""
    found = number(milliseconds)
    return None if found is None else found / 1000


def _meta(name: str) -> Callable[[Asked], Any]:
    return lambda it: getattr(it.meta, name)


def _tokens(name: str) -> Callable[[Asked], Any]:
    return lambda it: getattr(it.tokens, name)


COLUMNS: Final[tuple[Column[Asked], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("call_index", "Int64", lambda it: it.order, "order of recording, from 0; says nothing of causes"),
    Column("invocation_id", "string", lambda it: it.owner, "the invocation it belongs to; NA if nobody claims it"),
    Column("server", "string", lambda it: it.meta.model_ref and it.meta.model_ref.name, "the model server"),
    Column("model", "string", _meta("model"), "who answered"),
    Column("dialect", "category", _meta("dialect"), "how it was asked", ("responses", "chat", "messages")),
    Column("status_code", "Int64", _meta("status_code"), "what the client got"),
    Column("error_category", "category", _meta("error_category"), "group of failures; NA for a call that went well"),
    Column("finish_reason", "category", _meta("finish_reason"), "why the model stopped, in the dialect's word"),
    Column("response_status", "category", _meta("response_status"), "what the response says of itself"),
    Column("response_source", "category", _meta("response_source"), "local: made in the model's place"),
    Column("input_tokens", "Int64", _tokens("prompt_tokens"), "tokens read; NA if not reported"),
    Column("output_tokens", "Int64", _tokens("completion_tokens"), "tokens written; NA if not reported"),
    Column("reasoning_tokens", "Int64", _tokens("reasoning_tokens"), "tokens written as reasoning"),
    Column("cached_tokens", "Int64", _tokens("cached_tokens"), "tokens read from a cache"),
    Column("total_tokens", "Int64", _tokens("total_tokens"), "read and written"),
    Column("seconds", "Float64", lambda it: seconds(it.it.duration_ms), "wall clock at the model server"),
    Column("seconds_to_first_token", "Float64", lambda it: seconds(it.meta.latency_ttft_ms), "of a streamed call"),
    Column("started_at", MOMENT, lambda it: it.it.started_at, "when it began"),
    Column("model_call_id", "string", lambda it: it.it.model_call_id, "its id"),
    Column("response_id", "string", _meta("response_id"), "id of the response"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return the captured calls of every result, by task, rollout and order of recording: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for key, row, _ in records.results(CallRow):
        told = row.trajectory
        owners = owners_of(told) if told else {}
        for index, call in enumerate((told and told.model_calls) or ()):
            meta, tokens = call.response_metadata or Metadata(), call.token_stats or Stats()
            builder.add(
                Asked(key, integer(row.attempt) or 0, index, call, meta, tokens, owners.get(call.model_call_id))
            )
    return builder.frame()


def owners_of(told: Called) -> dict[Any, Any]:
    """The invocation of each call, by the call's id."""
    return {
        reference.model_call_id: invocation.invocation_id
        for invocation in told.invocations or ()
        for reference in invocation.model_calls or ()
        if isinstance(reference.model_call_id, str)
    }
