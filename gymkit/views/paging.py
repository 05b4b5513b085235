"""Long things a page at a time: the entries of a conversation, a text. A page is made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from gymkit.views.conversation import CALL, OUTPUT, Piece
from gymkit.views.entry import Budget, code, entry
from gymkit.views.html import Html, tag

__all__ = ["Conversation", "Pages", "Text", "beginning"]

PAGE_ENTRIES: Final = 40
PAGE_CHARS: Final = 24_000
PART_CHARS: Final = 12_000
"""A longer text is shown in parts of this size."""

PAGE_BYTES: Final = 48_000
"""Bytes of HTML that the texts of one page may take, whatever is in them."""

Part = tuple[int, int]
"""Index of a piece, and the number of its part."""


class Pages(Protocol):
    """Something to read page by page."""

    def __len__(self) -> int:
        """How many pages there are; at least one."""

    def html(self, number: int) -> Html:
        """Return a page, the first being 0."""

    def label(self, number: int) -> str:
        """Say which part of the whole a page is; empty where it is the whole."""


class Conversation:
    """A conversation in pages of at most ``PAGE_ENTRIES`` entries and about ``PAGE_CHARS`` characters.

    A longer text goes on from page to page, in parts that say so.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._pages = list(_packed(pieces))

    def __len__(self) -> int:
        return len(self._pages)

    def html(self, number: int) -> Html:
        """Return a page as HTML."""
        budget = Budget.in_html(PART_CHARS, PAGE_BYTES)
        shown = [self._entry(part, budget) for part in self._pages[number]]
        return tag("div", *shown, class_="gk-transcript")

    def label(self, number: int) -> str:
        """Return which entries a page shows."""
        if len(self) == 1:
            return ""
        first, last = self._pages[number][0][0] + 1, self._pages[number][-1][0] + 1
        span = f"entry {first:,}" if first == last else f"entries {first:,} to {last:,}"
        return f"{span} of {len(self._pieces):,}"

    def page_of(self, index: int) -> int:
        """Return the number of the first page that shows the entry at ``index``."""
        return next((number for number, page in enumerate(self._pages) if page and page[-1][0] >= index), 0)

    def _entry(self, part: Part, budget: Budget) -> Html:
        index, number = part
        piece = self._pieces[index]
        of = _parts(piece)
        return entry(piece, budget) if of == 1 else entry(_cut(piece, number), budget, f"part {number + 1:,} of {of:,}")


def beginning(pieces: Sequence[Piece], room: int) -> Html:
    """Return as much of a conversation as fits into about ``room`` bytes of HTML, and how much does not."""
    budget = Budget.in_html(PART_CHARS, room)
    shown: list[Html] = []
    used = 0
    for piece in pieces:
        html = entry(piece, budget)
        used += len(html.encode())
        if used > room and shown:
            more = len(pieces) - len(shown)
            shown.append(tag("p", f"… {more:,} more {'entry' if more == 1 else 'entries'}, not shown", class_="gk-cut"))
            break
        shown.append(html)
    return tag("div", *shown, class_="gk-transcript")


class Text:
    """A text as code, in pages of ``PAGE_CHARS`` characters."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __len__(self) -> int:
        return max(-(-len(self._text) // PAGE_CHARS), 1)

    def html(self, number: int) -> Html:
        """Return a page as HTML."""
        budget = Budget.in_html(PAGE_CHARS, PAGE_BYTES)
        shown, note = budget.take(self._text[number * PAGE_CHARS : (number + 1) * PAGE_CHARS])
        return tag("div", code(shown, note), class_="gk-transcript")

    def label(self, number: int) -> str:
        """Return which characters a page shows."""
        if len(self) == 1:
            return ""
        last = min((number + 1) * PAGE_CHARS, len(self._text))
        return f"characters {number * PAGE_CHARS + 1:,} to {last:,} of {len(self._text):,}"


def _packed(pieces: Sequence[Piece]) -> Iterator[list[Part]]:
    page: list[Part] = []
    chars = 0
    for index, piece in enumerate(pieces):
        for number in range(_parts(piece)):
            size = _chars(piece.text, number) + _chars(piece.arguments, number)
            if page and (len(page) == PAGE_ENTRIES or chars + size > PAGE_CHARS):
                yield page
                page, chars = [], 0
            page.append((index, number))
            chars += size
    yield page


def _parts(piece: Piece) -> int:
    return max(-(-max(len(piece.text or ""), len(piece.arguments or "")) // PART_CHARS), 1)


def _chars(text: str | None, number: int) -> int:
    """How long a part of a text is."""
    return max(min(len(text or "") - number * PART_CHARS, PART_CHARS), 0)


def _cut(piece: Piece, number: int) -> Piece:
    """Return one part of a piece: of its arguments, and of its text."""
    part = slice(number * PART_CHARS, (number + 1) * PART_CHARS)
    text = None if piece.text is None else piece.text[part]
    arguments = None if piece.arguments is None else piece.arguments[part]
    if number and piece.kind in (CALL, OUTPUT) and text == "":
        text = "(the output is in an earlier part)"
    return replace(piece, text=text, arguments=arguments)
