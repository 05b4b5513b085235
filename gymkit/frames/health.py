"""One row per verdict on a result's evidence, and one row per finding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pandas as pd

from gymkit.frames.column import Builder, Column

VERDICTS: Final = ("healthy", "unhealthy", "unobserved")
"""What can be said of a row."""

COLUMNS: Final[tuple[Column[Any], ...]] = (
    Column("task_index", "Int64", lambda it: it.task, "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.rollout, "number of the rollout of that task"),
    Column("verdict", "category", lambda it: it.verdict, "what is to be held of it", VERDICTS),
    Column("findings", "Int64", lambda it: len(it.findings), "things that are wrong"),
    Column("calls", "Int64", lambda it: it.calls, "captured calls of models"),
    Column("failed_calls", "Int64", lambda it: it.failed, "of these, failed"),
    Column("unobserved", "string", lambda it: " ".join(it.unobserved) or None, "checks that cannot tell"),
)

FINDINGS: Final[tuple[Column[Any], ...]] = (
    Column("task_index", "Int64", lambda it: it[0].task, "number of the task"),
    Column("rollout_index", "Int64", lambda it: it[0].rollout, "number of the rollout of that task"),
    Column("check", "category", lambda it: it[1].check, "which check says so"),
    Column("locator", "string", lambda it: it[1].locator, "where: a call, or a turn"),
    Column("detail", "string", lambda it: it[1].detail, "what is wrong"),
)


def verdicts(given: Iterable[Any]) -> pd.DataFrame:
    """Return the verdicts in ``given``: ``COLUMNS``."""
    builder = Builder(COLUMNS)
    for each in given:
        builder.add(each)
    return builder.frame()


def findings(given: Iterable[Any]) -> pd.DataFrame:
    """Return the findings of the verdicts in ``given``: ``FINDINGS``."""
    builder = Builder(FINDINGS)
    for each in given:
        for finding in each.findings:
            builder.add((each, finding))
    return builder.frame()
