"""What every browser offers: a widget, its filter and selection for the next cell, and a copy that needs no widget."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

from gymkit.views.grid import Field
from gymkit.views.html import Html, visible
from gymkit.views.listing import Listing
from gymkit.views.navigator import Navigator, Reading

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["View", "short"]

TITLE_CHARS: Final = 120


class View(ABC):
    """Rows of a frame to sort, filter and open; end a cell with it.

    ``ways`` are the ways to read a row, ``keys`` the columns that name it. Raises ConfigError without them.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        keys: Sequence[str],
        fields: Sequence[Field],
        *,
        ways: Sequence[str],
        title: str,
        stacked: bool = False,
    ) -> None:
        self._listing = Listing(frame, keys)
        self._fields = fields
        self._title = short(title)
        self._navigator = Navigator(self._listing, fields, self._reading, title=self._title, ways=ways, stacked=stacked)

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

        Setting it to rows (any frame with the columns that name a row) marks them and opens the first. Raises
        ConfigError for a row that is not there.
        """
        navigator = self._navigator
        chosen = sorted(navigator.marked) or ([] if navigator.current is None else [navigator.current])
        return self._listing.frame.iloc[chosen]

    @selection.setter
    def selection(self, rows: pd.DataFrame) -> None:
        keys = list(self._listing.keys)
        positions = [self._listing.position(key) for key in Listing(rows, keys).frame[keys].itertuples(index=False)]
        self._navigator.mark(positions)
        if positions:
            self._navigator.open(positions[0])

    def sort(self, column: str | None, *, descending: bool = False) -> None:
        """Sort by any column of the frame, None for the order it came in. Raises ConfigError."""
        self._navigator.sort(column, descending)

    @abstractmethod
    def html(self) -> Html:
        """Return the first rows and the open one as HTML that needs no widget."""

    @abstractmethod
    def _reading(self, position: int, way: str) -> Reading:
        """Return what is to be read of the row at a position of the frame."""

    def _open(self, *key: Hashable) -> None:
        position = self._listing.position(key)
        self._navigator.mark(())
        self._navigator.open(position)

    def __repr__(self) -> str:
        found = f"{len(self._listing):,} of {len(self._listing.frame):,} rows"
        return f"<{type(self).__name__} {visible(self._title)}: {found}>"

    def _repr_html_(self) -> str:
        return self.html()

    def _ipython_display_(self) -> None:
        self._navigator.display(self.html(), repr(self))


def short(title: str) -> str:
    """Return a title, cut where it is longer than anybody reads."""
    return title if len(title) <= TITLE_CHARS else f"{title[:TITLE_CHARS]} …"
