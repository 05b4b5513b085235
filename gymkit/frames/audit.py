"""One row per check of a simulated user, and per fault where it broke one: whether the user kept to its part."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pandas as pd

from gymkit.frames.cells import integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.conversation_rows import Audit, AuditRow, Fault
from gymkit.frames.records import Key, Records


class Checked(NamedTuple):
    """One check of one episode, with one of its faults."""

    key: Key
    """The rollout."""
    attempt: int
    """The attempt that gave the result."""
    check: str
    """Which."""
    status: Any
    """kept, broken or unknown."""
    masks: bool
    """Whether breaking it masks an episode."""
    fault: Fault
    """What the user did wrong; empty for one that it kept."""


_CHECKS: Final = ("role", "language", "persona", "facts", "stopping", "leak")

COLUMNS: Final[tuple[Column[Checked], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("check", "category", lambda it: it.check, "what was looked at", _CHECKS),
    Column("status", "category", lambda it: it.status, "unknown: nobody looked", ("kept", "broken", "unknown")),
    Column("masks", "boolean", lambda it: it.masks, "whether breaking it masks an episode (usersim:user_fault)"),
    Column("turn", "Int64", lambda it: it.fault.turn, "which of the user's messages broke it, from 0"),
    Column("quote", "string", lambda it: it.fault.quote, "what the user said, word for word"),
    Column("reason", "string", lambda it: it.fault.reason, "what is wrong with it"),
    Column("by", "category", lambda it: it.fault.by, "who found it", ("rule", "judge")),
)


def frame(records: Records) -> pd.DataFrame:
    """Return what is known of the users of a run, by task, rollout and check: ``COLUMNS``.

    A check that was broken several times has a row for each; episodes without an audit have none.
    """
    builder = Builder(COLUMNS)
    for key, row, _ in records.results(AuditRow):
        data = row.verification.verifier_data if row.verification else None
        if data is not None and data.user_audit is not None:
            _add(builder, key, integer(row.attempt) or 0, data.user_audit)
    return builder.frame()


def _add(builder: Builder[Checked], key: Key, attempt: int, audit: Audit) -> None:
    masks = set(audit.masks or ())
    for check, status in (audit.checks or {}).items():
        faults = [fault for fault in audit.faults or () if fault.check == check]
        for fault in faults or [Fault()]:
            builder.add(Checked(key, attempt, check, status, check in masks, fault))
