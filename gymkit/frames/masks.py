"""One row per result: whether its reward measures the agent, and why not."""

from __future__ import annotations

from typing import Final

import pandas as pd

from gymkit.frames.cells import flag, integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.records import Key, Records
from gymkit.frames.rows import Verdict

Masked = tuple[Key, Verdict]

COLUMNS: Final[tuple[Column[Masked], ...]] = (
    Column("task_index", "Int64", lambda it: it[0][0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it[0][1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: integer(it[1].attempt) or 0, "number of the attempt that gave the result"),
    Column("mask_sample", "boolean", lambda it: bool(flag(it[1].mask_sample)), "whether the reward is no measurement"),
    Column("failure_kind", "category", lambda it: it[1].failure_kind, "kind of failure that the verifier named"),
    Column("failure_reason", "string", lambda it: it[1].failure_reason, "the failure in words"),
    Column("reward", "Float64", lambda it: it[1].reward, "the reward as recorded, also where it is masked"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return the masks of a run, by task and rollout index: ``COLUMNS``, one row for each result in the main file."""
    builder = Builder(COLUMNS)
    positions: dict[Key, int] = {}
    for position, (key, row, _) in enumerate(records.rollouts(Verdict)):
        builder.add((key, row))
        positions[key] = position
    return builder.frame().iloc[[positions[key] for key in sorted(positions)]].reset_index(drop=True)
