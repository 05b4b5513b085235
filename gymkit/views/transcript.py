"""One rollout's conversation to read: static HTML in a cell, plain text anywhere else, the same things in both.

Long texts are folded, very long ones and the middle of very long conversations are cut, and each cut says so; the
``trajectories`` frame has everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gymkit.views.conversation import CALL, OUTPUT, Piece, pieces
from gymkit.views.html import Html, fold, framed, join, tag, trimmed, visible

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Transcript"]

FOLDED_CHARS: Final = 2_000
"""A text longer than this is folded."""

_ERRORS: Final = {
    "undeclared": "asked for a tool that this task does not have",
    "malformed": "arguments that are no JSON object",
    "failed": "the tool answered with an error",
}
_PREVIEW_CHARS: Final = 160


class Transcript:
    """The conversation of one rollout.

    Parameters
    ----------
    trajectory:
        The rollout's rows of the ``trajectories`` frame, or of a frame of your own with columns of these names.
    tool_calls:
        The ``tool_calls`` frame, for what went wrong with a call and how long it took; rows of others are ignored.
    max_items, max_chars, max_total:
        How many items, characters of one text, and characters in all are shown.

    Raises ConfigError when the rows are of more than one rollout.
    """

    def __init__(
        self,
        trajectory: pd.DataFrame,
        tool_calls: pd.DataFrame | None = None,
        *,
        max_items: int = 400,
        max_chars: int = 20_000,
        max_total: int = 500_000,
    ) -> None:
        self.pieces = pieces(trajectory, tool_calls)
        """What was said and done, in order, each call joined with its output."""
        self._name = _name(trajectory)
        self._max_items = max_items
        self._max_chars = max_chars
        self._max_total = max_total

    @property
    def title(self) -> str:
        """Which rollout it is, how long it is, and how many of its calls went wrong."""
        calls = [piece for piece in self.pieces if piece.kind == CALL]
        wrong = sum(piece.error is not None for piece in calls)
        errors = f", {wrong} of them with an error" if wrong else ""
        return (
            f"{self._name}: {_count(len(self.pieces), 'entry', 'entries')}, {_count(len(calls), 'tool call')}{errors}"
        )

    def html(self) -> Html:
        """Return the conversation as HTML for the output of a cell."""
        budget = _Budget(self._max_chars, self._max_total)
        items = [
            tag("p", piece, class_="gk-cut") if isinstance(piece, str) else _item(piece, budget)
            for piece in self._shown()
        ]
        return framed(
            tag("p", self.title, class_="gk-quiet"), tag("div", *items, class_="gk-transcript"), label=self.title
        )

    def text(self) -> str:
        """Return the conversation as plain text, safe to print."""
        budget = _Budget(self._max_chars, self._max_total)
        blocks = [piece if isinstance(piece, str) else "\n".join(_lines(piece, budget)) for piece in self._shown()]
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


class _Budget:
    """How much text may still be shown."""

    def __init__(self, max_chars: int, max_total: int) -> None:
        self._max_chars = max_chars
        self._left = max_total

    def take(self, text: str) -> tuple[str, str]:
        """Return as much of ``text`` as there is room for, and a note of what was cut."""
        shown, note = trimmed(text, min(self._max_chars, max(self._left, _PREVIEW_CHARS)))
        self._left -= len(shown)
        return shown, note


def _item(piece: Piece, budget: _Budget) -> Html:
    head = tag("p", join([tag("strong", tag("bdi", _who(piece))), *_notes(piece)], " "), class_="gk-who")
    body = _reasoning(piece, budget) if piece.kind == "reasoning" else _body(piece, budget)
    kind = "call" if piece.kind in (CALL, OUTPUT) else piece.role or piece.kind
    known = kind if kind in ("user", "assistant", "system", "developer", "call", "reasoning") else "other"
    return tag("div", head, *body, class_=f"gk-item gk-is-{known}")


def _notes(piece: Piece) -> Iterator[Html]:
    if remarks := _remarks(piece):
        yield tag("span", " · ".join(remarks), class_="gk-quiet")
    if piece.error:
        yield tag("strong", f"✗ {_wrong(piece)}", class_="gk-bad")


def _reasoning(piece: Piece, budget: _Budget) -> list[Html]:
    text = piece.text or ""
    return [fold(f"{len(text):,} characters", _prose(*budget.take(text)))] if text else [_nothing("kept to itself")]


def _body(piece: Piece, budget: _Budget) -> list[Html]:
    if piece.kind not in (CALL, OUTPUT):
        return [_long(piece.text, budget, code=False)] if piece.text else [_nothing("says nothing")]
    asked = [_long(piece.arguments, budget, code=True)] if piece.arguments else []
    if piece.text is None:
        return [*asked, _nothing("no output")]
    answer = _long(piece.text, budget, code=True) if piece.text else _nothing("empty output")
    arrow = tag("span", "→", class_="gk-arrow", aria_hidden="true")
    return [*asked, tag("div", arrow, answer, class_="gk-output", role="group", aria_label="output")]


def _long(text: str, budget: _Budget, *, code: bool) -> Html:
    """Text as it is, or folded under its beginning when it is long."""
    shown, note = budget.take(text)
    body = _code(shown, note) if code else _prose(shown, note)
    if len(text) <= FOLDED_CHARS:
        return body
    return fold(f"{' '.join(text[:_PREVIEW_CHARS].split())} … ({len(text):,} characters)", body)


def _prose(text: str, note: str) -> Html:
    # Line breaks are elements here, since a host that drops the style sheet would run the lines together.
    return join([tag("p", join(text.split("\n"), tag("br")), class_="gk-text", dir="auto"), _cut(note)])


def _code(text: str, note: str) -> Html:
    return join([tag("pre", text, class_="gk-code"), _cut(note)])


def _cut(note: str) -> Html:
    return tag("p", note, class_="gk-cut") if note else Html("")


def _nothing(sentence: str) -> Html:
    return tag("p", sentence, class_="gk-quiet")


def _lines(piece: Piece, budget: _Budget) -> Iterator[str]:
    notes = [*_remarks(piece), *([f"✗ {_wrong(piece)}"] if piece.error else [])]
    yield visible(_who(piece) + (f" ({', '.join(notes)})" if notes else ""))
    if piece.kind in (CALL, OUTPUT):
        yield from _indented(piece.arguments or "", budget)
        yield from _indented("(no output)" if piece.text is None else f"→ {piece.text}", budget)
    else:
        yield from _indented(piece.text or "", budget)


def _indented(text: str, budget: _Budget) -> Iterator[str]:
    shown, note = budget.take(text)
    lines = [*visible(shown).split("\n"), *filter(None, [note])]
    yield from (f"    {line}" for line in lines if line or text)


def _who(piece: Piece) -> str:
    if piece.kind == CALL:
        return piece.name or "a tool without a name"
    return "an output without its call" if piece.kind == OUTPUT else piece.role or piece.kind


def _remarks(piece: Piece) -> list[str]:
    """What is known of a piece besides what it says, in a few words each."""
    remarks = ["part of the task"] if piece.origin == "task" else []
    if piece.kind == CALL:
        by = "" if piece.executed is None else ", run by gymkit" if piece.executed else ", run by the agent"
        remarks.append(f"tool call{by}")
    if piece.seconds is not None:
        remarks.append(f"{piece.seconds:.3g} s")
    return [*remarks, f"step {piece.step}"] if piece.step is not None else remarks


def _wrong(piece: Piece) -> str:
    return _ERRORS.get(piece.error or "", piece.error or "")


def _name(trajectory: pd.DataFrame) -> str:
    ids = {"task_index": "task", "rollout_index": "rollout", "attempt": "attempt"}
    words = [
        f"{word} {trajectory[column].iloc[0]}"
        for column, word in ids.items()
        if column in trajectory and len(trajectory)
    ]
    return ", ".join(words) or "conversation"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
