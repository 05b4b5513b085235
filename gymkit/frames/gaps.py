"""One row per gap: what the evidence of a rollout does not say, and says that it does not."""

from __future__ import annotations

from typing import Final, NamedTuple

import pandas as pd

from gymkit.frames.cells import integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.evidence_rows import GapRow, Missing
from gymkit.frames.records import Key, Records

SOURCES: Final = ("trajectory", "capture", "observations")
"""Who says so; what the trajectory took over from the others is told once."""


class Hole(NamedTuple):
    """One gap."""

    key: Key
    """The rollout."""
    attempt: int
    """The attempt that gave the result."""
    source: str
    """Who says so."""
    it: Missing
    """The gap."""


COLUMNS: Final[tuple[Column[Hole], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("source", "category", lambda it: it.source, "who says so", SOURCES),
    Column("code", "category", lambda it: it.it.code, "what is missing"),
    Column("invocation_id", "string", lambda it: it.it.invocation_id, "of which invocation; NA: of the rollout"),
    Column("detail", "string", lambda it: it.it.detail, "in words"),
)


def frame(records: Records) -> pd.DataFrame:
    """Return the gaps of every result, by task and rollout: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for key, row, _ in records.results(GapRow):
        told = set()
        for source, holes in zip(SOURCES, (row.trajectory, row.capture, row.observations), strict=True):
            for gap in (holes and holes.gaps) or ():
                name = (str(gap.code), str(gap.invocation_id), str(gap.detail))
                if name not in told:
                    told.add(name)
                    builder.add(Hole(key, integer(row.attempt) or 0, source, gap))
    return builder.frame()
