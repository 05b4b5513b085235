"""One row per result of an episode with simulated users: how the simulation ended, and what the verifier made of it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pandas as pd

from gymkit.frames.cells import flag, integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.conversation_rows import Ended, Outcome, OutcomeRow, Verification, VerifierData
from gymkit.frames.records import Key, Records


class Result(NamedTuple):
    """One result."""

    key: Key
    """The rollout."""
    row: OutcomeRow
    """All of it."""
    ended: Ended
    """The simulation."""
    outcome: Outcome
    """How it ended."""
    verified: Verification
    """The verifier's reply."""
    data: VerifierData
    """Its evidence."""


def _warnings(result: Result) -> str | None:
    kinds = [str(each.kind) for each in result.outcome.warnings or ()]
    return ", ".join(dict.fromkeys(kinds)) or None


def _passed(result: Result) -> Any:
    return result.data.scorer_status_proposal if result.data.scorer_state == "ok" else None


def _degraded(result: Result) -> bool | None:
    return flag(result.ended.retrieval.degraded) if result.ended.retrieval else None


_STATUSES: Final = ("ok", "completed_with_warnings", "failed")

COLUMNS: Final[tuple[Column[Result], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: integer(it.row.attempt) or 0, "number of the attempt that gave the result"),
    Column("probe_type", "category", lambda it: it.data.probe_type or it.ended.probe_type, "what it was about"),
    Column("locale", "category", lambda it: it.ended.locale, "language and country"),
    Column("persona_name", "string", lambda it: it.ended.persona_name, "who the user was"),
    Column("status", "category", lambda it: it.outcome.status, "how the simulation ended", _STATUSES),
    Column("failure_class", "category", lambda it: it.outcome.failure_class, "what went wrong in it"),
    Column("failure_attribution", "category", lambda it: it.outcome.failure_attribution, "whose fault that was"),
    Column("failure_detail", "string", lambda it: it.outcome.failure_detail or None, "the same in words"),
    Column("turns", "Int64", lambda it: it.outcome.n_turns, "turns of the assistant"),
    Column("tool_calls", "Int64", lambda it: it.outcome.n_tool_calls, "tool calls, as the simulation counts them"),
    Column(
        "early_stop", "boolean", lambda it: it.outcome.early_stop, "whether the user was finished before the last turn"
    ),
    Column("warnings", "string", _warnings, "kinds of warnings, such as content that no expert has reviewed"),
    Column("retrieval_degraded", "boolean", _degraded, "whether documents were found by words only; NA: none searched"),
    Column("scorer", "category", lambda it: it.data.scorer_name, "the probe's scorer; NA where none applies"),
    Column("scorer_state", "category", lambda it: it.data.scorer_state, "whether it could score"),
    Column("scorer_passed", "boolean", _passed, "whether the conversation passes; NA where it cannot tell"),
    Column("scenario_completed", "boolean", lambda it: it.verified.scenario_completed, "whether all of it was done"),
    Column("reward", "Float64", lambda it: it.row.reward, "the reward as recorded, also where it is masked"),
    Column("mask_sample", "boolean", lambda it: it.row.mask_sample, "whether the reward is no measurement"),
    Column("failure_kind", "category", lambda it: it.row.failure_kind, "kind of failure that the verifier named"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return how the episodes of a run ended, by task and rollout: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for key, row, _ in records.results(OutcomeRow):
        if (ended := row.usersim_result) is not None:
            verified = row.verification or Verification()
            data = verified.verifier_data or VerifierData()
            builder.add(Result(key, row, ended, ended.simulation_outcome or Outcome(), verified, data))
    return builder.frame()
