"""A listing to look through and, beside it, what is to be read of the open row: what every browser is made of.

Python draws the table and the pane as HTML, and only the page at hand: what is not shown has not been sent. A front
end may deliver messages on a thread beside the cell, so every change is made under a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec
from uuid import uuid4

from gymkit.errors import ConfigError, GymkitError
from gymkit.views.facets import Facets
from gymkit.views.grid import PAGE_ROWS, Field, Handles, grid
from gymkit.views.html import Html, join, tag, visible
from gymkit.views.listing import Filter, Listing
from gymkit.views.paging import Pages
from gymkit.views.panel import Panel, section
from gymkit.wire import codec

__all__ = ["Navigator", "Reading"]

P = ParamSpec("P")


@dataclass(frozen=True)
class Reading:
    """What is to be read of one row."""

    head: Html
    """What stands above it on every page."""
    pages: Pages
    """The rest."""
    start: int = 0
    """The page to begin with."""


Read = Callable[[int, str], Reading]
"""Given the position of a row in the frame and one of the ways to read it, what is to be read."""


def _alone(method: Callable[Concatenate[Navigator, P], None]) -> Callable[Concatenate[Navigator, P], None]:
    """Make a method wait until no other one is at work."""

    @wraps(method)
    def locked(self: Navigator, /, *args: P.args, **kwargs: P.kwargs) -> None:
        with self._lock:
            method(self, *args, **kwargs)

    return locked


class Navigator:
    """``listing`` as a table of ``fields``, and ``read`` beside it (or below it, ``stacked``) in one of ``ways``."""

    def __init__(
        self,
        listing: Listing,
        fields: Sequence[Field],
        read: Read,
        *,
        title: str,
        ways: Sequence[str],
        stacked: bool = False,
    ) -> None:
        self.listing = listing
        self.current = listing.at(0) if len(listing) else None
        """Position in the frame of the open row."""
        self.marked: set[int] = set()
        """Positions of the marked rows."""
        self.id = uuid4().hex[:12]
        """What tells it from others on a page."""
        self._fields = fields
        self._read = read
        self._title = title
        self._lock = RLock()
        self._page = 0
        self._reading: Reading | None = None
        self._read_page = 0
        self._facets = Facets(listing, self._refilter)
        self.panel = Panel(
            self.id,
            self._facets,
            ways,
            stacked=stacked,
            turn_rows=self._turn_rows,
            step=self._step,
            turn_pages=self._turn_pages,
            way=self._draw_reading,
            clear=lambda: self.narrow(""),
            command=self._obey,
        )
        self._draw()

    @_alone
    def open(self, position: int) -> None:
        """Open the row at ``position`` of the frame; a filter that leaves it out is taken away."""
        if self.listing.place(position) is None:
            self.listing.narrow(Filter())
            self._facets.show("")
        self.current = position
        self._page = self._place_of_current() // PAGE_ROWS
        self._draw()

    @_alone
    def mark(self, positions: Iterable[int]) -> None:
        """Mark the rows at ``positions`` of the frame, and no others."""
        self.marked = set(positions)
        self._draw_rows()

    @_alone
    def narrow(self, query: str) -> None:
        """Filter by ``query`` and nothing else. Raises ConfigError."""
        self.listing.narrow(Filter(query))
        self._facets.show(query)
        self._follow()

    @_alone
    def sort(self, column: str | None, descending: bool = False) -> None:
        """Sort by ``column``; None: as the frame is. Raises ConfigError."""
        self.listing.sort(column, descending)
        self._page = 0
        self._draw_rows()

    def display(self, static: Html, text: str) -> None:
        """Show it in the cell, behind a static copy that is seen wherever the widget is not.

        Two outputs, because a front end that finds no kernel for a widget shows an error in its place and nothing
        else of that output: it is so when a notebook is opened the next day.
        """
        from IPython.display import display

        rule = f"body:has(.gk-live-{self.id}) .gk-copy-{self.id} {{ display: none; }}"
        hidden = join([Html(f"<style>{rule}</style>"), tag("div", static, class_=f"gk-copy-{self.id} gk-static")])
        display({"text/html": hidden, "text/plain": visible(text)}, raw=True)  # type: ignore[no-untyped-call]
        bundle = self.panel.root._repr_mimebundle_() | {"text/plain": visible(text)}
        display(bundle, raw=True)  # type: ignore[no-untyped-call]

    # --- what is shown ----------------------------------------------------------------------------------------------

    def _place_of_current(self) -> int:
        """The place of the open row, -1 where there is none."""
        place = None if self.current is None else self.listing.place(self.current)
        return -1 if place is None else place

    def _follow(self) -> None:
        """After another filter: stay with the open row if it is still there, else go to the first."""
        place = self._place_of_current()
        self._page = max(place, 0) // PAGE_ROWS
        if place < 0:
            self.current = self.listing.at(0) if len(self.listing) else None
            self._draw_reading()
        self._draw_rows()

    def _draw(self) -> None:
        self._draw_rows()
        self._draw_reading()

    def _draw_rows(self) -> None:
        listing, first = self.listing, self._page * PAGE_ROWS
        rows = listing.rows(first, first + PAGE_ROWS)
        marked = frozenset(place for place in range(first, first + len(rows)) if listing.at(place) in self.marked)
        handles = Handles(
            self.id, len(listing), self._place_of_current(), marked, listing.sorted_by, listing.descending
        )
        self.panel.rows.value = section(grid(self._fields, rows, first, handles=handles))
        self.panel.span.value = section(tag("span", _span(first, len(rows), len(listing)), class_="gk-quiet"))
        self.panel.turn_rows[0].disabled = not self._page
        self.panel.turn_rows[1].disabled = first + len(rows) >= len(listing)
        self._draw_steps()
        self._say()

    def _draw_steps(self) -> None:
        place = self._place_of_current()
        self.panel.step[0].disabled = place <= 0
        self.panel.step[1].disabled = not 0 <= place < len(self.listing) - 1

    def _say(self, problem: str = "") -> None:
        total = f"{len(self.listing.frame):,} rows"
        found = f"{len(self.listing):,} of {total} match" if self.listing.filter else total
        marked = f" · {len(self.marked):,} marked" if self.marked else ""
        wrong = tag("strong", f" ✗ {problem}", class_="gk-bad") if problem else ""
        title = tag("strong", tag("bdi", self._title))
        said = tag("span", f" · {found}{marked}", class_="gk-quiet")
        self.panel.message.value = section(tag("p", title, said, wrong))

    @_alone
    def _draw_reading(self) -> None:
        self._reading, self._read_page = None, 0
        head, body = Html(""), tag("p", "No row matches the filter.", class_="gk-quiet")
        if self.current is not None:
            try:
                self._reading = self._read(self.current, self.panel.way.value)
                head, self._read_page = self._reading.head, self._reading.start
            except (GymkitError, OSError) as error:
                body = tag("p", f"✗ {error}", class_="gk-bad")
        self.panel.head.value = section(head)
        self._draw_page(body)

    def _draw_page(self, body: object = "") -> None:
        pages, number = self._reading.pages if self._reading else None, self._read_page
        count = len(pages) if pages else 1
        self.panel.body.value = section(pages.html(number) if pages else body)
        label = f"{pages.label(number)} · page {number + 1:,} of {count:,}" if pages and count > 1 else ""
        self.panel.page.value = section(tag("span", label, class_="gk-quiet"))
        self.panel.turn_pages[0].disabled = number == 0
        self.panel.turn_pages[1].disabled = number + 1 >= count

    # --- what the user does -----------------------------------------------------------------------------------------

    @_alone
    def _refilter(self) -> None:
        try:
            self.listing.narrow(self._facets.wanted())
        except ConfigError as error:
            self._say(str(error))
            return
        self._follow()

    @_alone
    def _turn_rows(self, by: int) -> None:
        if 0 <= (self._page + by) * PAGE_ROWS < len(self.listing):
            self._page += by
            self._draw_rows()

    @_alone
    def _step(self, by: int) -> None:
        place = self._place_of_current()
        if place >= 0 and 0 <= place + by < len(self.listing):
            self.open(self.listing.at(place + by))

    @_alone
    def _turn_pages(self, by: int) -> None:
        if self._reading is not None and 0 <= self._read_page + by < len(self._reading.pages):
            self._read_page += by
            self._draw_page()

    @_alone
    def _obey(self, command: str) -> None:
        asked = codec.loads(command.encode())
        if "sort" in asked:
            again = asked["sort"] == self.listing.sorted_by
            self.sort(asked["sort"], descending=again and not self.listing.descending)
        elif 0 <= (place := asked.get("row", asked.get("mark"))) < len(self.listing):
            position = self.listing.at(place)
            if "row" in asked:
                self.open(position)
            else:
                self.mark(self.marked ^ {position})


def _span(first: int, shown: int, total: int) -> str:
    return f"{first + 1:,} to {first + shown:,} of {total:,}" if shown else "none"
