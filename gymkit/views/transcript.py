"""One rollout's conversation to read: static HTML in a cell, plain text anywhere else, the same things in both.

Long texts are folded, very long ones and the middle of very long conversations are cut, and each cut says so; the
``trajectories`` frame has everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gymkit.views.conversation import CALL, Piece, Rows, pieces, rows
from gymkit.views.entry import Budget, entry, lines
from gymkit.views.html import Html, framed, tag, visible

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Transcript"]


class Transcript:
    """The conversation of one rollout.

    Parameters
    ----------
    trajectory:
        The rollout's rows of the ``trajectories`` frame, or of a frame of your own with columns of these names; as a
        frame, or as dicts.
    tool_calls:
        The ``tool_calls`` frame, for what went wrong with a call and how long it took; rows of others are ignored.
    max_items, max_chars, max_total:
        How many items, characters of one text, and characters in all are shown.

    Raises ConfigError when the rows are of more than one rollout.
    """

    def __init__(
        self,
        trajectory: pd.DataFrame | Rows,
        tool_calls: pd.DataFrame | Rows | None = None,
        *,
        max_items: int = 400,
        max_chars: int = 20_000,
        max_total: int = 500_000,
    ) -> None:
        items = trajectory if isinstance(trajectory, list) else rows(trajectory)
        calls = tool_calls if isinstance(tool_calls, list) else [] if tool_calls is None else rows(tool_calls)
        self.pieces = pieces(items, calls)
        """What was said and done, in order, each call joined with its output."""
        self._name = _name(items)
        self._max_items = max_items
        self._max_chars = max_chars
        self._max_total = max_total

    @property
    def title(self) -> str:
        """Which rollout it is, how long it is, and how many of its calls went wrong."""
        return f"{self._name}: {self.extent}"

    @property
    def extent(self) -> str:
        """How long it is, and how many of its calls went wrong."""
        calls = [piece for piece in self.pieces if piece.kind == CALL]
        wrong = sum(piece.error is not None for piece in calls)
        errors = f", {wrong} of them with an error" if wrong else ""
        return f"{_count(len(self.pieces), 'entry', 'entries')}, {_count(len(calls), 'tool call')}{errors}"

    def html(self) -> Html:
        """Return the conversation as HTML for the output of a cell."""
        budget = Budget(self._max_chars, self._max_total)
        items = [
            tag("p", piece, class_="gk-cut") if isinstance(piece, str) else entry(piece, budget)
            for piece in self._shown()
        ]
        return framed(
            tag("p", self.title, class_="gk-quiet"), tag("div", *items, class_="gk-transcript"), label=self.title
        )

    def text(self) -> str:
        """Return the conversation as plain text, safe to print."""
        budget = Budget(self._max_chars, self._max_total)
        blocks = [piece if isinstance(piece, str) else "\n".join(lines(piece, budget)) for piece in self._shown()]
        return "\n\n".join([visible(self.title), *blocks])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Transcript {visible(self.title)}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": str(self.html()), "text/plain": self.text()}

    def _shown(self) -> Iterator[Piece | str]:
        """The pieces to show, with a sentence in the place of those in the middle that are too many."""
        more = len(self.pieces) - self._max_items
        if more <= 0:
            yield from self.pieces
            return
        tail = self._max_items // 4
        yield from self.pieces[: self._max_items - tail]
        yield f"… {more:,} entries are not shown here; the trajectories frame has them …"
        yield from self.pieces[len(self.pieces) - tail :]


def _name(items: Rows) -> str:
    ids = {"task_index": "task", "rollout_index": "rollout", "attempt": "attempt"}
    words = [f"{word} {items[0][column]}" for column, word in ids.items() if items and column in items[0]]
    return ", ".join(words) or "conversation"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
