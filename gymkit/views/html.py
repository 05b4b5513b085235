"""What every view's HTML is made of: escaping, elements, tables, folds.

Agents and models wrote most of what a view shows, so text is hostile until it went through here. ``tag`` escapes
every child that is not already ``Html``; a view that is built from ``tag`` alone cannot forget it. Control
characters, terminal escapes, bidirectional controls and characters without width are shown as visible marks.
Nothing here needs JavaScript, and all of it reads well when a host drops the style sheet, as GitHub does.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["Html", "escape", "fold", "framed", "join", "table", "tag", "trimmed", "visible"]

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls but tab and newline: bells, ANSI, carriage returns
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # without width: hyphens, joiners, fillers
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"  # and those that turn text
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tags: whole messages that nobody sees
    "\ud800-\udfff\U0010d800-\U0010dfff]"  # lone surrogates, and what stands for them in a frame
    "|(?<![\u00a9\u00ae#*0-9\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"  # unless they belong to an emoji
)
_CONTROLS: Final = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI "
    "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
)
_STAND_INS: Final = range(0x10D800, 0x10E000)
_STAND_IN_SHIFT: Final = 0x100000
_VOID: Final = frozenset({"br", "hr", "img", "meta"})


class Html(str):
    """Text that is HTML already. Whoever makes one vouches that everything in it is escaped."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def visible(text: str) -> str:
    """Return ``text`` with a visible mark for each character that hides, reorders or steers: ``⟨ESC⟩`` or ``⟨U+202E⟩``.

    Tabs and newlines stay. The result is safe to print in a terminal and to encode as UTF-8; it is not HTML yet.
    """
    return _HIDDEN.sub(lambda match: _mark(match[0]), text)


def escape(text: object) -> Html:
    """Return ``text`` as HTML that shows exactly its characters; ``Html`` is returned as it is.

    Hidden characters become a ``<span class="gk-mark">`` with the character's name as its title.
    """
    if isinstance(text, Html):
        return text
    return Html(_HIDDEN.sub(_marked, html.escape(str(text))))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Return an element; children that are not ``Html`` are escaped, and so are attribute values.

    An attribute name ends in ``_`` where Python has the word (``class_``), and other ``_`` are read as ``-``
    (``aria_label``). ``True`` writes the bare name, ``None`` and ``False`` leave the attribute out.
    """
    head = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{head}>")
    return Html(f"<{head}>{join(children)}</{name}>")


def join(parts: Iterable[object], separator: object = "") -> Html:
    """Return the parts one after the other, escaped where they are not ``Html``."""
    return Html(escape(separator).join([escape(part) for part in parts]))


def table(columns: Sequence[object], rows: Iterable[Sequence[object]], *, caption: object = None) -> Html:
    """Return a table; cells are escaped, each set apart so that right-to-left text cannot reorder its neighbours."""
    head = tag("tr", *[tag("th", column, scope="col") for column in columns])
    body = [tag("tr", *[_cell(value) for value in row]) for row in rows]
    title = tag("caption", caption) if caption is not None else Html("")
    return tag("table", title, tag("thead", head), tag("tbody", *body), class_="gk-table")


def fold(summary: object, *body: object, open: bool = False) -> Html:
    """Return a part that opens on a click or a key press, without JavaScript."""
    return tag("details", tag("summary", summary), *body, open=open, class_="gk-fold")


def framed(*body: object, label: str) -> Html:
    """Return ``body`` as the complete output of a cell: with the style sheet, named ``label`` for screen readers."""
    return join([Html(f"<style>{style_sheet()}</style>"), tag("section", *body, class_="gk", aria_label=label)])


def trimmed(text: str, limit: int) -> tuple[str, str]:
    """Return the first ``limit`` characters and a note of how many more there are, empty when there are none."""
    more = len(text) - limit
    return (text, "") if more <= 0 else (text[:limit], f"… {more:,} more characters, not shown")


@cache
def style_sheet() -> str:
    """Return the style sheet that the views share."""
    return (Path(__file__).parent / "assets" / "gymkit.css").read_text(encoding="utf-8")


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(visible(str(value)))}"'


def _cell(value: object) -> Html:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return tag("td", value, class_="gk-number") if number else tag("td", tag("bdi", value))


def _marked(match: re.Match[str]) -> str:
    mark = _mark(match[0])
    return f'<span class="gk-mark" title="{html.escape(_name(match[0]))}">{mark}</span>'


@cache
def _mark(char: str) -> str:
    code = _code(char)
    return f"⟨{_CONTROLS.split()[code]}⟩" if code < 0x20 else f"⟨U+{code:04X}⟩"


def _name(char: str) -> str:
    return f"U+{_code(char):04X} {unicodedata.name(char, '')}".rstrip()


def _code(char: str) -> int:
    code = ord(char)
    return code - _STAND_IN_SHIFT if code in _STAND_INS else code
