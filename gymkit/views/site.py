"""A run as pages that link to each other: what `gymkit view` serves. Plain HTML, a page of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from gymkit.errors import ConfigError
from gymkit.views.conversation import asked
from gymkit.views.document import document
from gymkit.views.entry import Budget
from gymkit.views.evidence import evidence, headline, meaning
from gymkit.views.grid import ROLLOUTS, grid, present
from gymkit.views.html import Html, join, tag
from gymkit.views.listing import Filter, Listing
from gymkit.views.paging import Conversation, Pages, Text
from gymkit.views.transcript import Transcript
from gymkit.wire import codec

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Site"]

PAGE_ROWS: Final = 100
VALUE_CHARS: Final = 4_000
HEAD_BYTES: Final = 40_000
_FACETS: Final = ("status", "failure_kind")
_KEYS: Final = ("task_index", "rollout_index")

Asked = Mapping[str, str]
"""The parameters of an address."""


class Site:
    """The pages of one run: ``index`` and one for each rollout. Parameters that make no sense raise ConfigError.

    Filters are values of columns, never expressions: an address can come from anywhere, and what it says is not run.
    """

    def __init__(
        self,
        rewards: pd.DataFrame,
        *,
        conversation: Callable[[int, int], Transcript],
        record: Callable[[int, int], Mapping[str, Any]],
        title: str,
        summary: Html,
    ) -> None:
        self._rewards = rewards
        self._conversation = conversation
        self._record = record
        self._title = title
        self._summary = summary
        self._fields = present(rewards, ROLLOUTS)

    def index(self, asked_for: Asked) -> str:
        """Return the summary and a page of rollouts; ``page``, ``sort`` (``-`` for the highest first) and facets."""
        listing = self._listing(asked_for)
        pages = max(-(-len(listing) // PAGE_ROWS), 1)
        page = min(_number(asked_for.get("page", "1"), "page"), pages)
        first = (page - 1) * PAGE_ROWS
        rows = listing.rows(first, first + PAGE_ROWS)
        shown = f"{first + 1:,} to {first + len(rows):,} of {len(listing):,} rollouts" if rows else "no rollouts"
        kept = {name: asked_for[name] for name in ("sort", *_FACETS) if name in asked_for}
        return document(
            self._title,
            tag("h1", self._title),
            self._summary,
            tag("h2", "Rollouts"),
            *[self._facet(listing, name, kept) for name in _FACETS if name in self._rewards],
            self._sorts(kept),
            tag(
                "div",
                grid(self._fields, rows, first, caption=shown, link=lambda row: _link(row, kept)),
                class_="gk-wide",
            ),
            _turn("/", page, pages, kept),
        )

    def rollout(self, task: int, rollout: int, asked_for: Asked) -> str:
        """Return one rollout: what is known of it, and a page of its conversation, or with ``raw`` of its row."""
        listing = self._listing(asked_for)
        row = listing.row(listing.position((task, rollout)))
        record = self._record(task, rollout)
        raw = "raw" in asked_for
        pages = self._pages(task, rollout, record, raw)
        page = min(_number(asked_for.get("page", "1"), "page"), len(pages))
        budget = Budget.in_html(VALUE_CHARS, HEAD_BYTES)
        kept = {name: asked_for[name] for name in ("sort", *_FACETS) if name in asked_for}
        here = f"/rollout/{task}/{rollout}"
        ways = [_choice("conversation", here, kept, not raw), _choice("raw JSON", here, {**kept, "raw": "1"}, raw)]
        return document(
            f"task {task}, rollout {rollout} · {self._title}",
            tag("nav", tag("a", "all rollouts", href=_address("/", kept)), *_neighbours(listing, task, rollout, kept)),
            tag("h1", headline(row, budget)),
            *meaning(row, record, budget),
            *evidence(row, record, None, budget),
            tag("nav", *ways),
            tag("p", pages.label(page - 1), class_="gk-quiet"),
            pages.html(page - 1),
            _turn(here, page, len(pages), {**kept, **({"raw": "1"} if raw else {})}),
        )

    def _pages(self, task: int, rollout: int, record: Mapping[str, Any], raw: bool) -> Pages:
        if raw:
            return Text(codec.dumps_indented(record).decode())
        return Conversation(self._conversation(task, rollout).pieces or asked(record))

    def _listing(self, asked_for: Asked) -> Listing:
        listing = Listing(self._rewards, _KEYS)
        among = [
            (name, frozenset([asked_for[name]])) for name in _FACETS if name in asked_for and name in self._rewards
        ]
        listing.narrow(Filter(among=tuple(among)))
        if column := asked_for.get("sort", ""):
            listing.sort(column.removeprefix("-"), descending=column.startswith("-"))
        return listing

    def _facet(self, listing: Listing, name: str, kept: Asked) -> Html:
        others = {key: value for key, value in kept.items() if key != name}
        budget = Budget.in_html(60, 10_000)
        choices = [_choice(f"any {name.replace('_', ' ')}", "/", others, name not in kept)]
        choices += [
            _choice(
                f"{budget.name(value or 'none')} ({count:,})", "/", {**others, name: value}, kept.get(name) == value
            )
            for value, count in list(listing.counts(name).items())[:50]
        ]
        return tag("nav", *choices, aria_label=name.replace("_", " "))

    def _sorts(self, kept: Asked) -> Html:
        others = {key: value for key, value in kept.items() if key != "sort"}
        choices = [tag("span", "sorted by", class_="gk-quiet"), _choice("task", "/", others, "sort" not in kept)]
        for field in self._fields:
            if field.name not in _KEYS:
                up = kept.get("sort") == field.name
                way = f"-{field.name}" if up else field.name
                arrow = " ↑" if up else " ↓" if kept.get("sort") == f"-{field.name}" else ""
                choices.append(_choice(f"{field.label}{arrow}", "/", {**others, "sort": way}, bool(arrow)))
        return tag("nav", *choices, aria_label="order")


def _neighbours(listing: Listing, task: int, rollout: int, kept: Asked) -> Sequence[Html]:
    place = listing.place(listing.position((task, rollout)))
    if place is None:
        return []
    found = [("‹ previous", place - 1), ("next ›", place + 1)]
    return [
        tag("a", text, href=_link(listing.rows(at, at + 1)[0], kept)) for text, at in found if 0 <= at < len(listing)
    ]


def _link(row: Mapping[str, Any], kept: Asked) -> str:
    return _address(f"/rollout/{int(row['task_index'])}/{int(row['rollout_index'])}", kept)


def _choice(text: str, path: str, asked_for: Asked, here: bool) -> Html:
    return tag("a", text, href=_address(path, asked_for), aria_current="true" if here else None)


def _turn(path: str, page: int, pages: int, kept: Asked) -> Html:
    if pages == 1:
        return Html("")
    steps = [("« first", 1), ("‹ earlier", page - 1), ("later ›", page + 1), ("last »", pages)]
    links = [
        tag("a", text, href=_address(path, {**kept, "page": str(to)}))
        for text, to in steps
        if 1 <= to <= pages and to != page
    ]
    return tag("nav", join(links), tag("span", f"page {page:,} of {pages:,}", class_="gk-quiet"), aria_label="pages")


def _address(path: str, asked_for: Asked) -> str:
    return f"{path}?{urlencode(asked_for)}" if asked_for else path


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise ConfigError(f"{name}={text[:40]} is not a number from 1")
    return int(text)
