"""A run as one file to send around: no network, no script, and a size that was chosen beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gymkit.views.conversation import asked
from gymkit.views.document import document
from gymkit.views.entry import Budget
from gymkit.views.evidence import evidence, headline, meaning
from gymkit.views.grid import ROLLOUTS, grid, present
from gymkit.views.html import Html, table, tag
from gymkit.views.listing import Listing
from gymkit.views.paging import beginning
from gymkit.views.transcript import Transcript

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Reader", "report"]

LIMIT_BYTES: Final = 4_900_000
"""Bytes of the whole file."""

SHOWN_ROLLOUTS: Final = 1_000
CAUSES: Final = 50
CAUSE_CHARS: Final = 500
HEAD_BYTES: Final = 2_500
LEAST_BYTES: Final = 400
"""Bytes that the beginning of a conversation gets in any case."""

_READ_FIRST: Final = {"failed": 0, "masked": 1, "scored": 2, "missing": 3}

Key = tuple[int, int]
Reader = Callable[[Sequence[Key]], Iterable[tuple[Key, Transcript, Mapping[str, Any]]]]
"""Given keys of rollouts, each with its conversation and its row on disk, one after the other."""


def report(rewards: pd.DataFrame, causes: pd.DataFrame, read: Reader, *, title: str, summary: Html) -> str:
    """Return a run as a complete HTML page: summary, failures by cause, the rollouts, and their conversations.

    Of more than ``SHOWN_ROLLOUTS`` those that failed, were masked or scored lowest are listed; long conversations are
    cut so that all of it stays under ``LIMIT_BYTES``. Both are said where they happen. ``summary`` is the HTML of the
    numbers, ``causes`` as ``stats.failures_by_cause`` returns it.
    """
    chosen = _chosen(rewards)
    listing = Listing(chosen, ("task_index", "rollout_index"))
    rows = listing.rows(0, len(chosen))
    shown = f"{len(rows):,} rollouts"
    if len(chosen) < len(rewards):
        shown = f"{len(rows):,} of {len(rewards):,} rollouts: those that failed, were masked or scored lowest"
    front = [
        tag("h1", title),
        summary,
        tag("h2", "Failures by cause"),
        _causes(causes),
        tag("h2", "Rollouts"),
        tag("div", grid(present(chosen, ROLLOUTS), rows, 0, caption=shown, link=_link), class_="gk-wide"),
        tag("h2", "Conversations"),
    ]
    empty = len(document(title, *front).encode())
    return document(title, *front, *_conversations(rows, read, LIMIT_BYTES - empty))


def _chosen(rewards: pd.DataFrame) -> pd.DataFrame:
    if len(rewards) <= SHOWN_ROLLOUTS or "status" not in rewards:
        return rewards.head(SHOWN_ROLLOUTS)
    rank = rewards["status"].map(_READ_FIRST).astype("Int64")
    order = rewards.assign(_rank=rank).sort_values(["_rank", "reward"], kind="stable").index[:SHOWN_ROLLOUTS]
    return rewards.loc[sorted(order)]


def _causes(causes: pd.DataFrame) -> Html:
    if not len(causes):
        return tag("p", "No attempt failed.", class_="gk-quiet")
    budget = Budget.in_html(CAUSE_CHARS, 50 * CAUSE_CHARS)
    rows = [
        (
            int(row["attempts"]),
            int(row["rollouts"]),
            budget.name(row["failure_kind"]),
            budget.name(row["cause"]),
            " ".join(filter(None, budget.take(str(row["message"])))),
        )
        for row in causes.head(CAUSES).to_dict("records")
    ]
    shown = f"{len(rows):,} of {len(causes):,} causes" if len(rows) < len(causes) else None
    head = ["attempts", "rollouts", "kind", "cause", "one example"]
    return tag("div", table(head, rows, caption=shown), class_="gk-wide")


def _conversations(rows: Sequence[Mapping[str, Any]], read: Reader, room: int) -> Iterator[Html]:
    """Yield each rollout folded; what a short one leaves over is there for those after it."""
    known = {_key(row): row for row in rows}
    left = len(known)
    for key, transcript, record in read(list(known)):
        part = _rollout(key, known[key], transcript, record, max(room // left, LEAST_BYTES))
        room -= len(part.encode())
        left -= 1
        yield part


def _rollout(key: Key, row: Mapping[str, Any], transcript: Transcript, record: Mapping[str, Any], room: int) -> Html:
    budget = Budget.in_html(CAUSE_CHARS, min(HEAD_BYTES, room // 2))
    summary = tag("summary", headline(row, budget))
    head = tag("div", *meaning(row, record, budget), *evidence(row, record, None, budget))
    pieces = transcript.pieces or asked(record)
    body = beginning(pieces, max(room - len(summary.encode()) - len(head.encode()) - 200, LEAST_BYTES))
    # The id is inside, since a browser that is led to something folded unfolds it.
    inner = tag("div", head, body, id=f"r-{key[0]}-{key[1]}")
    return tag("details", summary, inner, class_="gk-fold gk-rollout")


def _key(row: Mapping[str, Any]) -> Key:
    return int(row["task_index"]), int(row["rollout_index"])


def _link(row: Mapping[str, Any]) -> str:
    return "#r-{}-{}".format(*_key(row))
