"""One entry of a conversation as HTML or as lines of text, within a budget of what may still be shown.

Every text in it is foreign, names and roles included, so every text is taken from the budget: whatever an agent wrote,
a page has a size that was chosen beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gymkit.views.conversation import CALL, OUTPUT, Piece
from gymkit.views.html import Html, escape, fold, join, tag, trimmed, visible

__all__ = ["Budget", "Difference", "code", "entry", "lines", "prose"]

FOLDED_CHARS: Final = 2_000
"""A text longer than this is folded."""

NAME_CHARS: Final = 1_000
"""A name longer than this is cut."""

_ERRORS: Final = {
    "undeclared": "asked for a tool that this task does not have",
    "malformed": "arguments that are no JSON object",
    "failed": "the tool answered with an error",
}
_PREVIEW_CHARS: Final = 160


@dataclass(frozen=True)
class Difference:
    """Where an entry begins to differ from another one."""

    field: str
    """``arguments`` or ``text``; empty where it is neither: another kind, speaker or tool."""
    at: int = 0
    """Characters of the field that are the same in both."""


class Budget:
    """How much foreign text may still be shown.

    ``max_chars`` bounds each text, ``total`` all of them, in what ``weigh`` counts: characters, or with ``in_html``
    bytes of HTML, in which a hidden character takes eighty.
    """

    def __init__(self, max_chars: int, total: int, weigh: Callable[[str], int] = len) -> None:
        self._max_chars = max_chars
        self._left = total
        self._weigh = weigh

    @classmethod
    def in_html(cls, max_chars: int, total: int) -> Budget:
        """Return a budget of ``total`` bytes of HTML."""
        return cls(max_chars, total, _html_bytes)

    def take(self, text: str) -> tuple[str, str]:
        """Return as much of ``text`` as there is room for, and a note of what was cut."""
        room = max(self._left, _PREVIEW_CHARS)
        shown = text[: min(self._max_chars, room)]
        while (weight := self._weigh(shown)) > room:
            shown = shown[: len(shown) // 2]
        self._left -= weight
        return shown, trimmed(text, len(shown))[1]

    def name(self, text: object) -> str:
        """Return a name, an ellipsis in the place of what there is no room for."""
        shown, note = self.take(str(text)[: NAME_CHARS + 1])
        shown = shown[:NAME_CHARS]
        return f"{shown} …" if note or len(str(text)) > len(shown) else shown


def _html_bytes(text: str) -> int:
    return len(escape(text).encode())


def entry(piece: Piece, budget: Budget, note: str = "", differs: Difference | None = None) -> Html:
    """Return ``piece`` as HTML.

    ``note`` says which part of a longer piece it is, and a part is not folded; ``differs`` marks what is different.
    """
    notes = [*([tag("span", " · ".join(found), class_="gk-quiet")] if (found := _remarks(piece, note)) else [])]
    if piece.error:
        notes.append(tag("strong", f"✗ {_wrong(piece)}", class_="gk-bad"))
    head = tag("p", join([tag("strong", tag("bdi", budget.name(_who(piece)))), *notes], " "), class_="gk-who")
    body = _reasoning(piece, budget) if piece.kind == "reasoning" else _body(piece, budget, not note, differs)
    kind = "call" if piece.kind in (CALL, OUTPUT) else piece.role or piece.kind
    known = kind if kind in ("user", "assistant", "system", "developer", "call", "reasoning") else "other"
    wrong = " gk-is-wrong" if piece.error else ""
    return tag("div", head, *body, class_=f"gk-item gk-is-{known}{wrong}")


def lines(piece: Piece, budget: Budget) -> Iterator[str]:
    """Yield ``piece`` as lines of plain text, safe to print."""
    notes = [*_remarks(piece), *([f"✗ {_wrong(piece)}"] if piece.error else [])]
    yield visible(budget.name(_who(piece)) + (f" ({', '.join(notes)})" if notes else ""))
    if piece.kind in (CALL, OUTPUT):
        yield from _indented(piece.arguments or "", budget)
        yield from _indented("(no output)" if piece.text is None else f"→ {piece.text}", budget)
    else:
        yield from _indented(piece.text or "", budget)


def prose(text: str, note: str = "", differs_at: int | None = None) -> Html:
    """Return what somebody said, with its line breaks, and the ``note`` of what was cut."""
    # Line breaks are elements here, since a host that drops the style sheet would run the lines together.
    parts = [join(part.split("\n"), tag("br")) for part in _split(text, differs_at)]
    return join([tag("p", _marked(parts), class_="gk-text", dir="auto"), _cut(note)])


def code(text: str, note: str = "", differs_at: int | None = None) -> Html:
    """Return ``text`` as code, and the ``note`` of what was cut."""
    return join([tag("pre", _marked(_split(text, differs_at)), class_="gk-code"), _cut(note)])


def _split(text: str, at: int | None) -> list[str]:
    return [text] if at is None else [text[:at], text[at:]]


def _marked(parts: Sequence[str]) -> Html:
    return join([parts[0], *[tag("mark", part, class_="gk-differs") for part in parts[1:] if part]])


def _reasoning(piece: Piece, budget: Budget) -> list[Html]:
    text = piece.text or ""
    return [fold(f"{len(text):,} characters", prose(*budget.take(text)))] if text else [_nothing("kept to itself")]


def _body(piece: Piece, budget: Budget, folds: bool, differs: Difference | None) -> list[Html]:
    def long(text: str, field: str, shape: Callable[[str, str, int | None], Html]) -> Html:
        if differs is not None and differs.field == field:
            return _from(differs.at, text, budget, shape)
        return _long(text, budget, shape, folds)

    if piece.kind not in (CALL, OUTPUT):
        return [long(piece.text, "text", prose)] if piece.text else [_nothing("says nothing")]
    asked = [long(piece.arguments, "arguments", code)] if piece.arguments else []
    if piece.text is None:
        return [*asked, _nothing("no output")]
    answer = long(piece.text, "text", code) if piece.text else _nothing("empty output")
    arrow = tag("span", "→", class_="gk-arrow", aria_hidden="true")
    return [*asked, tag("div", arrow, answer, class_="gk-output", role="group", aria_label="output")]


def _long(text: str, budget: Budget, shape: Callable[[str, str, int | None], Html], folds: bool) -> Html:
    """Text as it is, or folded under its beginning when it is long."""
    if len(text) <= FOLDED_CHARS or not folds:
        return shape(*budget.take(text), None)
    beginning = budget.take(" ".join(text[:_PREVIEW_CHARS].split()))[0]
    return fold(f"{beginning} … ({len(text):,} characters)", shape(*budget.take(text), None))


def _from(at: int, text: str, budget: Budget, shape: Callable[[str, str, int | None], Html]) -> Html:
    """Text with a mark from ``at`` on, and no more than a little of what comes before."""
    skipped = max(at - _PREVIEW_CHARS, 0)
    before = _cut(f"… {skipped:,} characters that are the same …" if skipped else "")
    return join([before, shape(*budget.take(text[skipped:]), at - skipped)])


def _cut(note: str) -> Html:
    return tag("p", note, class_="gk-cut") if note else Html("")


def _nothing(sentence: str) -> Html:
    return tag("p", sentence, class_="gk-quiet")


def _indented(text: str, budget: Budget) -> Iterator[str]:
    shown, note = budget.take(text)
    parts = [*visible(shown).split("\n"), *filter(None, [note])]
    yield from (f"    {line}" for line in parts if line or text)


def _who(piece: Piece) -> str:
    if piece.kind == CALL:
        return piece.name or "a tool without a name"
    return "an output without its call" if piece.kind == OUTPUT else piece.role or piece.kind


def _remarks(piece: Piece, note: str = "") -> list[str]:
    """What is known of a piece besides what it says, in a few words each."""
    remarks = ["part of the task"] if piece.origin == "task" else []
    if piece.kind == CALL:
        by = "" if piece.executed is None else ", run by gymkit" if piece.executed else ", run by the agent"
        remarks.append(f"tool call{by}")
    if piece.seconds is not None:
        remarks.append(_lasted(piece.seconds))
    remarks += [f"step {piece.step}"] if piece.step is not None else []
    return [*remarks, note] if note else remarks


def _wrong(piece: Piece) -> str:
    return _ERRORS.get(piece.error or "", (piece.error or "")[:NAME_CHARS])


def _lasted(seconds: float) -> str:
    """``seconds`` in the unit that a person reads: tools of an embedded environment take fractions of a millisecond."""
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1000:.3g} ms"
