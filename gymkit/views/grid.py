"""A page of rows as a table: the columns worth showing, their cells in words, and handles for keys and clicks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gymkit.views.entry import Budget
from gymkit.views.html import Html, join, tag

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COMPARED", "ROLLOUTS", "Field", "Handles", "cell", "grid", "present"]

PAGE_ROWS: Final = 25
"""Rows of a page."""

CELL_CHARS: Final = 60
PAGE_BYTES: Final = 20_000
"""Bytes that the foreign texts of one page may take."""

_SYMBOLS: Final = {
    "scored": "●", "masked": "◐", "failed": "✗", "missing": "○",
    "win": "▲", "loss": "▼", "tie": "=", "no score": "○", "only in a": "◁", "only in b": "▷",
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A column of the table."""

    name: str
    """Its column in the frame."""
    label: str
    """Its heading."""
    digits: int | None = None
    """Decimals of a number at most; None: not a number."""
    usual: tuple[str, ...] = ()
    """Values that say nothing new and are left empty."""


ROLLOUTS: Final = (
    Field("task_index", "task", 0),
    Field("task_id", "name"),
    Field("rollout_index", "rollout", 0),
    Field("status", "status"),
    Field("reward", "reward", 3),
    Field("failure_kind", "failure"),
    Field("termination_reason", "cut by", usual=("message", "error")),
    Field("steps", "steps", 0),
    Field("tool_calls", "calls", 0),
    Field("total_tokens", "tokens", 0),
    Field("seconds", "seconds", 2),
)
"""What a ``rewards`` frame shows of a rollout."""

COMPARED: Final = (
    Field("task", "task"),
    Field("outcome", "outcome"),
    Field("mean_a", "mean a", 3),
    Field("mean_b", "mean b", 3),
    Field("difference", "difference", 3),
    Field("scored_a", "scored a", 0),
    Field("scored_b", "scored b", 0),
)
"""What the paired tasks of two runs show."""


@dataclass(frozen=True)
class Handles:
    """What a table needs to be used: which row is open, which are marked, and what it is sorted by."""

    id: str
    """Prefix of the ids of its rows."""
    total: int
    """Rows of all pages."""
    current: int | None = None
    """Place of the open row."""
    marked: frozenset[int] = frozenset()
    """Places of the marked rows."""
    sorted_by: str | None = None
    """Column that it is sorted by."""
    descending: bool = False
    """Whether the highest comes first."""


def present(frame: pd.DataFrame, fields: Sequence[Field]) -> tuple[Field, ...]:
    """Return those of ``fields`` that ``frame`` has a value for; a name that only repeats the number is none."""
    kept = [field for field in fields if field.name in frame and (not len(frame) or _says(frame[field.name], field))]
    if {"task_id", "task_index"} <= set(frame) and frame["task_id"].equals(frame["task_index"].astype("string")):
        kept = [field for field in kept if field.name != "task_id"]
    return tuple(kept)


def _says(column: pd.Series[Any], field: Field) -> bool:
    return bool((column.notna() & ~column.isin(field.usual)).any())


def grid(
    fields: Sequence[Field],
    rows: Sequence[Mapping[str, Any]],
    first: int,
    *,
    handles: Handles | None = None,
    link: Callable[[Mapping[str, Any]], str] | None = None,
    caption: object = None,
) -> Html:
    """Return ``rows`` as a table, the first at place ``first`` of the listing.

    With ``handles`` it is made for a widget: rows and headings carry what the script sends back. With ``link`` the
    first cell leads to an address. Without either it is plain.
    """
    budget = Budget.in_html(CELL_CHARS, PAGE_BYTES)
    head = tag("tr", join([_heading(field, handles) for field in fields]), role=_role("row", handles))
    body = [_row(fields, row, first + index, budget, handles, link) for index, row in enumerate(rows)]
    title = tag("caption", caption) if caption is not None else Html("")
    return tag(
        "table",
        title,
        tag("thead", head, role=_role("rowgroup", handles)),
        tag("tbody", *body, role=_role("rowgroup", handles)),
        class_="gk-table gk-grid",
        role=_role("none", handles),
        data_total=handles.total if handles else None,
        data_id=handles.id if handles else None,
    )


def _role(role: str, handles: Handles | None) -> str | None:
    """Roles are spelt out where the element around the table, which stays while its pages come and go, is the grid."""
    return role if handles else None


def _heading(field: Field, handles: Handles | None) -> Html:
    kind = "gk-number" if field.digits is not None else None
    if handles is None:
        return tag("th", field.label, scope="col", class_=kind)
    here = handles.sorted_by == field.name
    arrow = (" ↓" if handles.descending else " ↑") if here else ""
    sort = ("descending" if handles.descending else "ascending") if here else "none"
    button = tag("button", field.label + arrow, type="button", data_sort=field.name, title=f"sort by {field.name}")
    return tag("th", button, scope="col", class_=kind, role="columnheader", aria_sort=sort)


def _row(
    fields: Sequence[Field],
    row: Mapping[str, Any],
    place: int,
    budget: Budget,
    handles: Handles | None,
    link: Callable[[Mapping[str, Any]], str] | None,
) -> Html:
    cells = [cell(field, row.get(field.name), budget) for field in fields]
    if link is not None:
        cells[0] = tag("a", cells[0], href=link(row))
    kinds = ["gk-number" if field.digits is not None else None for field in fields]
    shown = [
        tag("td", inner, class_=kind, role=_role("gridcell", handles)) for inner, kind in zip(cells, kinds, strict=True)
    ]
    if handles is None:
        return tag("tr", *shown)
    marked = place in handles.marked
    return tag(
        "tr",
        *shown,
        role="row",
        id=f"{handles.id}-{place}",
        data_row=place,
        aria_selected="true" if place == handles.current else "false",
        class_="gk-marked" if marked else None,
    )


def cell(field: Field, value: Any, budget: Budget) -> Html:
    """Return one value as it stands in a cell; a missing value is empty."""
    if value is None or value in field.usual:
        return Html("")
    if field.digits is not None and isinstance(value, int | float):
        return tag("span", number(value, field.digits))
    text = budget.name(value)
    if field.name in ("status", "outcome"):
        kind = str(value).replace(" ", "-") if value in _SYMBOLS else "other"
        return tag("span", f"{_SYMBOLS.get(str(value), '·')} {text}", class_=f"gk-as-{kind}")
    return tag("bdi", text)


def number(value: float, digits: int) -> str:
    """Return a number with ``digits`` decimals at most and no zeros behind; what is not 0 is not shown as 0."""
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.1g}" if text in ("0", "-0") and value else text
