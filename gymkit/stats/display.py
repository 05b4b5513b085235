"""Numbers and foreign text as they appear in a repr or in HTML.

Names of tasks, agents and columns come from files that somebody else wrote: they are shown, never interpreted.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Sequence

_CELL = "padding:.15em .8em .15em 0;vertical-align:top;text-align:{}"
_HEAD = "border-bottom:1px solid;font-weight:600;"


def number(value: float, digits: int = 2, sign: bool = False) -> str:
    """``value`` with ``digits`` decimals (more when it would vanish), NA for NaN, a plus sign on demand."""
    if math.isnan(value):
        return "NA"
    if 0 < abs(value) < 0.5 * 10**-digits:
        return f"{value:{'+' if sign else ''}.1g}"
    return f"{value:{'+' if sign and value else ''}.{digits}f}"


def span(value: float, low: float, high: float, sign: bool = False) -> str:
    """``0.62 [0.53, 0.70]``, with as many decimals as the width deserves, at least two."""
    digits = 2
    if high > low and math.isfinite(high - low):
        digits = min(max(1 - math.floor(math.log10(high - low)), 2), 6)
    if math.isnan(low) or math.isnan(high):
        return f"{number(value, digits, sign)} [no interval]"
    return f"{number(value, digits, sign)} [{low:.{digits}f}, {high:.{digits}f}]"


def p_text(p: float) -> str:
    """``p 0.031``; never ``p 0.000``."""
    return "p NA" if math.isnan(p) else "p < 0.001" if p < 0.001 else f"p {p:.3f}"


def plural(count: int, noun: str) -> str:
    """``1 task``, ``1,200 tasks``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plain(text: object) -> str:
    """Foreign text on one line, with control, direction, zero-width and surrogate characters spelled out."""
    return "".join(_spelled(char) if unicodedata.category(char) in _HIDDEN else char for char in str(text))


_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def _spelled(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def escaped(text: object) -> str:
    """Foreign text for HTML: as ``plain``, then escaped."""
    return html.escape(plain(text))


def card(title: str, facts: str, warnings: Sequence[str], body: str) -> str:
    """One result as HTML: a headline, a line of facts, what to beware of, and a table already made by ``table``."""
    notes = "".join(f'<p role="note" style="margin:.3em 0"><b>⚠ Note:</b> {escaped(text)}</p>' for text in warnings)
    return (
        '<div class="gymkit-stats" style="max-width:60em">'
        f'<p style="margin:.2em 0;font-size:1.15em"><b>{escaped(title)}</b></p>'
        f'<p style="margin:.2em 0">{escaped(facts)}</p>{notes}{body}</div>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """An HTML table; the first column is text, the others numbers unless the heading is ``method``."""
    sides = ["left" if place == 0 or name == "method" else "right" for place, name in enumerate(head)]
    top = "".join(
        f'<th scope="col" style="{_HEAD}{_CELL.format(side)}">{escaped(name)}</th>'
        for name, side in zip(head, sides, strict=True)
    )
    lines = "".join(
        "<tr>" + "".join(_cell(cell, side) for cell, side in zip(row, sides, strict=True)) + "</tr>" for row in rows
    )
    title = f'<caption style="text-align:left;font-style:italic">{escaped(caption)}</caption>'
    return f'<table style="border-collapse:collapse">{title}<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>'


def _cell(text: str, side: str) -> str:
    return f'<td style="{_CELL.format(side)}">{escaped(text)}</td>'


def folded(label: str, body: str) -> str:
    """``body`` (HTML) behind a line that opens it, without JavaScript."""
    return f"<details><summary>{escaped(label)}</summary>{body}</details>"


def cells(value: float, low: float, high: float, sign: bool = False) -> tuple[str, str]:
    """Value and interval as two table cells; the second is empty without an interval."""
    text, _, ends = span(value, low, high, sign).partition(" ")
    return text, "" if "no interval" in ends else ends
