"""Failed attempts grouped by cause, with one example each."""

from __future__ import annotations

import re

import pandas as pd

from gymkit.stats.scores import column

LIMIT = 500
"""Characters of a message that take part in the grouping; what follows differs by accident."""

# In this order: what is specific goes before the numbers that it contains.
PATTERNS = (
    (re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{12,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)


KINDS = ("failure_class", "failure_kind")
IDS = ("task_index", "rollout_index", "attempt")


def cause(message: str) -> str:
    """``message`` without what differs from one occurrence to the next: addresses, ids, numbers, spacing."""
    text = message[:LIMIT]
    for pattern, name in PATTERNS:
        text = pattern.sub(name, text)
    return text.strip()


def failures_by_cause(failures: pd.DataFrame) -> pd.DataFrame:
    """Group failed attempts by class, kind and cause, most frequent first.

    ``failures`` has one row a failed attempt: ``message``, and where known ``failure_class``, ``failure_kind`` and the
    ids. Returns failure_class, failure_kind, cause (string), attempts, rollouts, tasks (Int64, how many were hit), and
    one example, the first: task_index, rollout_index, attempt (Int64) and message (string) as recorded. The ids let
    the example be opened, or its rollouts be run again. Raises ConfigError without a ``message`` column.
    """
    messages = column(failures, "message").astype("string")
    empty = pd.Series(pd.NA, index=failures.index, dtype=object)
    frame = pd.DataFrame({name: failures.get(name, empty) for name in (*KINDS, *IDS)})
    frame = frame.astype(dict.fromkeys(KINDS, "string") | dict.fromkeys(IDS, "Int64"))
    frame["cause"] = messages.map(cause, na_action="ignore").astype("string")
    frame["message"] = messages
    frame["rollout"] = frame["task_index"].astype("string") + ":" + frame["rollout_index"].astype("string")
    keys = [*KINDS, "cause"]
    groups = frame.groupby(keys, dropna=False, sort=False)
    counts = groups.agg(attempts=("message", "size"), rollouts=("rollout", "nunique"), tasks=("task_index", "nunique"))
    examples = frame.drop_duplicates(keys)[[*keys, *IDS, "message"]]
    found = examples.reset_index(drop=True)
    for place, name in enumerate(counts.columns, start=3):
        found.insert(place, name, pd.Series(counts[name].to_numpy(), dtype="Int64"))
    return found.sort_values("attempts", ascending=False, kind="stable").reset_index(drop=True)
