"""A run to look through: every rollout in a table, and beside it the conversation of the open one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from gymkit.errors import StoreError
from gymkit.views.conversation import asked
from gymkit.views.entry import Budget
from gymkit.views.evidence import evidence, headline, meaning
from gymkit.views.grid import PAGE_ROWS, ROLLOUTS, grid, present
from gymkit.views.html import Html, fold, framed, join, tag, visible
from gymkit.views.listing import Listing
from gymkit.views.navigator import Navigator, Reading
from gymkit.views.paging import Conversation, Text
from gymkit.views.transcript import Transcript
from gymkit.wire import codec

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Browser"]

KEYS: Final = ("task_index", "rollout_index")
CONVERSATION: Final = "Conversation"
RAW: Final = "Raw JSON"
TITLE_CHARS: Final = 200
VALUE_CHARS: Final = 2_000
HEAD_BYTES: Final = 15_000
"""Bytes that the foreign texts above a conversation may take."""

STATIC_BYTES: Final = 40_000
"""Bytes that the texts of the conversation in a saved notebook may take."""


class Browser:
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
        self._listing = Listing(rewards, KEYS)
        self._fields = present(rewards, ROLLOUTS)
        self._conversation = conversation
        self._record = record
        self._failures = failures
        self._title = title if len(title) <= TITLE_CHARS else f"{title[:TITLE_CHARS]} …"
        self._source = source
        self._navigator = Navigator(self._listing, self._fields, self._reading, ways=(CONVERSATION, RAW))
        if query:
            self.query = query

    @property
    def widget(self) -> Any:
        """The ipywidgets container, to be put into a layout of your own."""
        return self._navigator.panel.root

    @property
    def query(self) -> str:
        """The filter, as ``DataFrame.query`` reads it; setting it takes every other filter away.

        Raises ConfigError with a sentence on what is wrong with it.
        """
        return self._listing.filter.query

    @query.setter
    def query(self, query: str) -> None:
        self._navigator.narrow(query)

    @property
    def matches(self) -> pd.DataFrame:
        """The rows that the filter leaves, in the order shown."""
        return self._listing.matches

    @property
    def selection(self) -> pd.DataFrame:
        """The marked rows, or else the open one; empty where no row matches.

        Setting it to rows (any frame with ``task_index`` and ``rollout_index``) marks them and opens the first.
        Raises ConfigError for a row that is not there.
        """
        navigator = self._navigator
        chosen = sorted(navigator.marked) or ([] if navigator.current is None else [navigator.current])
        return self._listing.frame.iloc[chosen]

    @selection.setter
    def selection(self, rows: pd.DataFrame) -> None:
        keys = Listing(rows, KEYS).frame[list(KEYS)].itertuples(index=False)
        positions = [self._listing.position(key) for key in keys]
        self._navigator.mark(positions)
        if positions:
            self._navigator.open(positions[0])

    def select(self, task: int, rollout: int = 0) -> None:
        """Open a rollout, and unmark all others. Raises ConfigError when it is not there."""
        position = self._listing.position((int(task), int(rollout)))
        self._navigator.mark(())
        self._navigator.open(position)

    def sort(self, column: str | None, *, descending: bool = False) -> None:
        """Sort by any column of the frame, None for the order it came in. Raises ConfigError."""
        self._navigator.sort(column, descending)

    def _reading(self, position: int, way: str) -> Reading:
        row = self._listing.row(position)
        key = int(row["task_index"]), int(row["rollout_index"])
        record = self._recorded(key)
        if way == RAW:
            pages: Conversation | Text = Text(codec.dumps_indented(record).decode())
        else:
            pages = Conversation(self._conversation(*key).pieces or asked(record))
        return Reading(self._head(row, key, record), pages)

    def _recorded(self, key: tuple[int, int]) -> Mapping[str, Any]:
        try:
            return self._record(*key)
        except StoreError:
            return {}  # a rollout that is missing has no row, and its status says so

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
        record, budget = self._recorded(key), Budget.in_html(VALUE_CHARS, HEAD_BYTES)
        transcript = self._conversation(*key)
        parts = [headline(row, budget), *meaning(row, record, budget), *evidence(row, record, None, budget)]
        text = transcript.body(Budget.in_html(VALUE_CHARS, STATIC_BYTES))
        return tag("div", *parts, fold(transcript.extent, text, open=True), class_="gk-reading")

    def _counts(self) -> str:
        if "status" not in self._listing.frame:
            return f"{len(self._listing.frame):,} rollouts"
        counts = [f"{count:,} {status}" for status, count in self._listing.counts("status").items()]
        return f"{len(self._listing.frame):,} rollouts: {', '.join(counts)}"

    def __repr__(self) -> str:
        found = f"{len(self._listing):,} of {len(self._listing.frame):,} rollouts"
        return f"<Browser {visible(self._title)}: {found}>"

    def _repr_html_(self) -> str:
        return self.html()

    def _ipython_display_(self) -> None:
        self._navigator.display(self.html(), repr(self))
