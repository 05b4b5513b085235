"""A run to look through: every rollout in a table, and beside it the conversation of the open one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from gymkit.errors import StoreError
from gymkit.views.conversation import asked
from gymkit.views.entry import Budget
from gymkit.views.evidence import evidence, headline, meaning
from gymkit.views.grid import PAGE_ROWS, ROLLOUTS, grid, present
from gymkit.views.html import Html, fold, framed, join, tag
from gymkit.views.navigator import Reading
from gymkit.views.paging import Conversation, Text, beginning
from gymkit.views.transcript import Transcript
from gymkit.views.view import View
from gymkit.wire import codec

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Browser"]

KEYS: Final = ("task_index", "rollout_index")
CONVERSATION: Final = "Conversation"
RAW: Final = "Raw JSON"
VALUE_CHARS: Final = 2_000
HEAD_BYTES: Final = 12_000
"""Bytes that the foreign texts above a conversation may take."""

STATIC_BYTES: Final = 40_000
"""Bytes that the texts of the conversation in a saved notebook may take."""


class Browser(View):
    """The rollouts of a run to sort, filter and read; end a cell with it.

    What is shown is asked for when it is shown: a page of rows, a page of one conversation.

    Parameters
    ----------
    rewards:
        One row a rollout: ``task_index``, ``rollout_index``, and what else there is to show, sort and filter by.
    conversation, record:
        Given task and rollout index, the conversation, and the whole row on disk (StoreError where there is none).
    failures:
        Given task and rollout index, the rows of its failed attempts, as in the ``failures`` frame.
    title:
        What was run.
    source:
        Code that makes the rollouts, for links to paste: ``{source}.conversation(3, 1)``.
    query:
        The filter to begin with.

    Raises ConfigError without the two columns, and for a query that cannot be evaluated.
    """

    def __init__(
        self,
        rewards: pd.DataFrame,
        *,
        conversation: Callable[[int, int], Transcript],
        record: Callable[[int, int], Mapping[str, Any]],
        failures: Callable[[int, int], pd.DataFrame] | None = None,
        title: str = "rollouts",
        source: str = "rollouts",
        query: str = "",
    ) -> None:
        self._conversation = conversation
        self._record = record
        self._failures = failures
        self._source = source
        super().__init__(rewards, KEYS, present(rewards, ROLLOUTS), ways=(CONVERSATION, RAW), title=title)
        if query:
            self.query = query

    def select(self, task: int, rollout: int = 0) -> None:
        """Open a rollout, and unmark all others. Raises ConfigError when it is not there."""
        self._open(int(task), int(rollout))

    def _reading(self, position: int, way: str) -> Reading:
        row = self._listing.row(position)
        key = int(row["task_index"]), int(row["rollout_index"])
        record = self._recorded(row, key)
        if way == RAW:
            pages: Conversation | Text = Text(codec.dumps_indented(record).decode())
        else:
            pages = Conversation(self._conversation(*key).pieces or asked(record))
        return Reading(self._head(row, key, record), pages)

    def _recorded(self, row: Mapping[str, Any], key: tuple[int, int]) -> Mapping[str, Any]:
        try:
            return self._record(*key)
        except StoreError:
            if row.get("status") != "missing":
                raise
            return {}  # it has no row, and its status says so

    def _head(self, row: Mapping[str, Any], key: tuple[int, int], record: Mapping[str, Any]) -> Html:
        budget = Budget.in_html(VALUE_CHARS, HEAD_BYTES)
        failures = self._failures(*key) if self._failures is not None else None
        code = f"{self._source}.conversation({key[0]}, {key[1]})"
        copy = tag("button", "copy", type="button", data_copy=code, class_="gk-copy", title="copy this line")
        link = tag("p", tag("code", code), " ", copy, class_="gk-link")
        parts = [headline(row, budget), *meaning(row, record, budget), *evidence(row, record, failures, budget)]
        return join([*parts, link])

    # --- without JavaScript -----------------------------------------------------------------------------------------

    def html(self) -> Html:
        """Return the first page of the table and the open conversation as HTML that needs no widget."""
        rows = self._listing.rows(0, PAGE_ROWS)
        more = len(self._listing) - len(rows)
        caption = f"{len(rows)} of {len(self._listing):,} rollouts" if more else f"{len(rows)} rollouts"
        parts = [tag("p", tag("strong", tag("bdi", self._title)), " ", tag("span", self._counts(), class_="gk-quiet"))]
        parts.append(grid(self._fields, rows, 0, caption=caption))
        if self._navigator.current is not None:
            parts.append(self._static_reading(self._navigator.current))
        return framed(*parts, label=f"Rollouts of {self._title}")

    def _static_reading(self, position: int) -> Html:
        row = self._listing.row(position)
        key = int(row["task_index"]), int(row["rollout_index"])
        record, budget = self._recorded(row, key), Budget.in_html(VALUE_CHARS, HEAD_BYTES)
        transcript = self._conversation(*key)
        parts = [headline(row, budget), *meaning(row, record, budget), *evidence(row, record, None, budget)]
        text = beginning(transcript.pieces or asked(record), STATIC_BYTES)
        return tag("div", *parts, fold(transcript.extent, text, open=True), class_="gk-reading")

    def _counts(self) -> str:
        if "status" not in self._listing.frame:
            return f"{len(self._listing.frame):,} rollouts"
        counts = [f"{count:,} {status}" for status, count in self._listing.counts("status").items()]
        return f"{len(self._listing.frame):,} rollouts: {', '.join(counts)}"
