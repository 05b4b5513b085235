"""Two runs to look through task by task: both conversations side by side, and where they part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gymkit.views.conversation import Piece, rows
from gymkit.views.entry import Budget, Difference, entry
from gymkit.views.evidence import headline
from gymkit.views.grid import COMPARED, PAGE_ROWS, cell, grid, number, present
from gymkit.views.html import Html, framed, join, tag
from gymkit.views.navigator import Reading
from gymkit.views.transcript import Transcript
from gymkit.views.view import View, short

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PairBrowser", "Run", "SideBySide", "first_difference"]

PAGE_ENTRIES: Final = 20
TEXT_CHARS: Final = 6_000
SIDE_BYTES: Final = 35_000
"""Bytes of HTML that the texts of one side of a page may take."""

STATIC_BYTES: Final = 20_000
HEAD_BYTES: Final = 4_000
_COMPARED: Final = ("kind", "role", "name", "arguments", "text")
_LOST_FIRST: Final = {"loss": 0, "win": 1}


@dataclass(frozen=True)
class Run:
    """One of the two runs."""

    name: str
    """What it is called."""
    rewards: pd.DataFrame
    """Its ``rewards`` frame."""
    conversation: Callable[[int, int], Transcript]
    """Given task and rollout index, the conversation."""

    def row(self, key: tuple[int, int]) -> dict[str, Any]:
        """Return what is known of a rollout, a missing value as None."""
        frame = self.rewards
        found = frame[(frame["task_index"] == key[0]) & (frame["rollout_index"] == key[1])]
        return next(iter(rows(found.head(1))), {})


class PairBrowser(View):
    """The tasks of two runs, those that were lost or won first, and two rollouts of the open one side by side.

    Parameters
    ----------
    tasks:
        The paired tasks: ``task``, ``outcome``, means, and the rollouts to look at, as ``stats.compare`` returns them.
    a, b:
        The two runs.
    title:
        What they say together.
    """

    def __init__(self, tasks: pd.DataFrame, a: Run, b: Run, *, title: str = "comparison") -> None:
        self._runs = (a, b)
        order = tasks.assign(
            _rank=[_LOST_FIRST.get(str(outcome), 2) for outcome in tasks["outcome"]], _size=tasks["difference"].abs()
        ).sort_values(["_rank", "_size"], ascending=[True, False], kind="stable")
        frame = tasks.loc[order.index]
        super().__init__(frame, ("task",), present(frame, COMPARED), ways=("Side by side",), title=title, stacked=True)

    def select(self, task: Hashable) -> None:
        """Open a task, and unmark all others. Raises ConfigError when it is not there."""
        self._open(task)

    def html(self) -> Html:
        """Return the first tasks and the open pair as HTML that needs no widget."""
        shown = self._listing.rows(0, PAGE_ROWS)
        caption = f"{len(shown)} of {len(self._listing):,} tasks, those lost or won first"
        parts = [tag("p", tag("strong", self._title)), tag("p", self._legend(), class_="gk-quiet")]
        parts.append(grid(self._fields, shown, 0, caption=caption))
        if self._navigator.current is not None:
            reading = self._read(self._navigator.current, STATIC_BYTES)
            parts.append(tag("div", reading.head, reading.pages.html(reading.start), class_="gk-reading"))
        return framed(*parts, label=self._title)

    def _legend(self) -> str:
        return f"a: {short(self._runs[0].name)} · b: {short(self._runs[1].name)}"

    def _reading(self, position: int, way: str) -> Reading:
        return self._read(position, SIDE_BYTES)

    def _read(self, position: int, side_bytes: int) -> Reading:
        row, budget = self._listing.row(position), Budget.in_html(TEXT_CHARS, HEAD_BYTES)
        keys = [_key(row, side) for side in ("a", "b")]
        sides = [run.conversation(*key).pieces if key else [] for run, key in zip(self._runs, keys, strict=True)]
        pages = SideBySide(sides[0], sides[1], side_bytes)
        heads = [
            _side(side, run, key, row, budget) for side, run, key in zip(("a", "b"), self._runs, keys, strict=True)
        ]
        difference = row.get("difference")
        parts = [
            tag("strong", "task ", tag("bdi", budget.name(row["task"]))),
            cell(COMPARED[1], row.get("outcome"), budget),
            *([f"a − b: {difference:+.3g}"] if difference is not None else []),
            tag("span", pages.verdict(), class_="gk-quiet"),
        ]
        head = join([tag("p", join(parts, " · ")), tag("div", *heads, class_="gk-sides")])
        return Reading(head, pages, pages.start)


class SideBySide:
    """Two conversations, entry beside entry, in pages; what comes before the first difference is there, but paler."""

    def __init__(self, a: Sequence[Piece], b: Sequence[Piece], side_bytes: int = SIDE_BYTES) -> None:
        self._sides = (a, b)
        self._side_bytes = side_bytes
        self.first, self._differences = first_difference(a, b)

    @property
    def start(self) -> int:
        """The page with the first difference."""
        return (self.first or 0) // PAGE_ENTRIES

    def __len__(self) -> int:
        return max(-(-max(map(len, self._sides)) // PAGE_ENTRIES), 1)

    def verdict(self) -> str:
        """Say where they part."""
        if self.first is None:
            return "both went the same way" if self._sides[0] else "there is nothing to compare"
        return f"they part at entry {self.first + 1:,}"

    def html(self, number: int) -> Html:
        """Return a page as HTML."""
        budgets = [Budget.in_html(TEXT_CHARS, self._side_bytes) for _ in self._sides]
        first = number * PAGE_ENTRIES
        last = min(first + PAGE_ENTRIES, max(map(len, self._sides)))
        return tag("div", *[self._pair(index, budgets) for index in range(first, last)], class_="gk-transcript")

    def label(self, number: int) -> str:
        """Return which entries a page shows."""
        if len(self) == 1:
            return ""
        total = max(map(len, self._sides))
        return f"entries {number * PAGE_ENTRIES + 1:,} to {min((number + 1) * PAGE_ENTRIES, total):,} of {total:,}"

    def _pair(self, index: int, budgets: Sequence[Budget]) -> Html:
        here = index == self.first
        cells = []
        for side, differs, budget in zip(self._sides, self._differences, budgets, strict=True):
            shown = entry(side[index], budget, differs=differs if here else None) if index < len(side) else _ended(side)
            cells.append(tag("div", shown, class_="gk-side"))
        mark = tag("p", tag("strong", "▼ the first difference"), class_="gk-parting") if here else Html("")
        same = self.first is None or index < self.first
        return join([mark, tag("div", *cells, class_="gk-sides gk-is-same" if same else "gk-sides")])


def first_difference(
    a: Sequence[Piece], b: Sequence[Piece]
) -> tuple[int | None, tuple[Difference | None, Difference | None]]:
    """Return the index of the first entry that differs, and how; None where both are the same.

    What is compared is what was said and done, not ids, times or who ran a call. Where one conversation ends, the
    other's next entry is the difference.
    """
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        if found := _difference(one, other):
            return index, (found, found)
    shorter = min(len(a), len(b))
    return (None if len(a) == len(b) else shorter), (None, None)


def _difference(one: Piece, other: Piece) -> Difference | None:
    for name in _COMPARED:
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            texts = isinstance(mine, str) and isinstance(theirs, str) and name in ("arguments", "text")
            return Difference(name, _same_chars(mine, theirs)) if texts else Difference("")
    return None


def _same_chars(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning; halved each time, for texts of any length."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _ended(side: Sequence[Piece]) -> Html:
    return tag("p", "ended before" if side else "no conversation with a score", class_="gk-quiet")


def _key(row: Mapping[str, Any], side: str) -> tuple[int, int] | None:
    task, rollout = row.get(f"task_index_{side}"), row.get(f"rollout_index_{side}")
    return None if task is None or rollout is None else (int(task), int(rollout))


def _side(side: str, run: Run, key: tuple[int, int] | None, row: Mapping[str, Any], budget: Budget) -> Html:
    mean, scored, expected = (row.get(f"{name}_{side}") for name in ("mean", "scored", "expected"))
    known = f"mean {number(mean, 3)} over {scored} of {expected} scored" if mean is not None else "no score"
    parts = [
        tag(
            "p",
            tag("strong", f"{side}: "),
            tag("bdi", budget.name(run.name)),
            tag("span", f" · {known}", class_="gk-quiet"),
        )
    ]
    parts += [headline(run.row(key), budget)] if key else []
    return tag("div", *parts, class_="gk-side")
