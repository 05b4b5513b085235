"""Rows of the ``trajectories`` frame in, the pieces of one conversation out: each call joined with its output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gymkit.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Piece", "Rows", "asked", "pieces", "rows"]

CALL: Final = "function_call"
OUTPUT: Final = "function_call_output"
_IDS: Final = ("task_index", "rollout_index", "attempt")


@dataclass
class Piece:
    """One thing that was said or done."""

    kind: str
    """``message``, ``reasoning``, ``function_call``, or whatever else the agent's service put there."""
    role: str | None = None
    """Of a message: who speaks."""
    text: str | None = None
    """What was said; of a call its output, None while nobody answered it."""
    name: str | None = None
    """Of a call: the function; None for an output whose call is not there."""
    arguments: str | None = None
    """Of a call: the arguments as written."""
    call_id: str | None = None
    """Of a call: what pairs it with its output."""
    origin: str | None = None
    """``task``, ``agent`` or ``environment``."""
    step: int | None = None
    """The call of the service that it belongs to, from 1."""
    executed: bool | None = None
    """Of a call: whether gymkit ran it (True) or the agent did (False)."""
    error: str | None = None
    """Of a call: ``undeclared``, ``malformed`` or ``failed``."""
    seconds: float | None = None
    """Of a call: how long it took."""


Rows = list[dict[str, Any]]
"""Rows of a frame as ``rows`` returns them."""


def pieces(items: Rows, calls: Rows) -> list[Piece]:
    """Return the pieces of one rollout in order, with the errors and times that ``calls`` knows of its calls.

    ``items`` are rows of ``trajectories``, ``calls`` of ``tool_calls``; fields that are not there count as empty.
    Raises ConfigError when the items are of more than one rollout.
    """
    _check_one(items)
    whose = {name: items[0].get(name) for name in _IDS} if items else {}
    known = [row for row in calls if all(row.get(name) == whose[name] for name in whose if name in row)]
    return _paired(sorted(items, key=lambda row: row.get("item_index") or 0), {row["item_index"]: row for row in known})


def rows(frame: pd.DataFrame) -> Rows:
    """Return the rows of ``frame`` as dicts, None for a missing cell, whatever dtype it came in.

    Column by column: for a few rows that is ten times as fast as what pandas has for it.
    """
    columns = [
        [None if missing else cell for cell, missing in zip(column.tolist(), column.isna().tolist(), strict=True)]
        for _, column in frame.items()
    ]
    names = [str(name) for name in frame.columns]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _check_one(items: Iterable[Mapping[str, Any]]) -> None:
    found = sorted({tuple(row[name] for name in _IDS[:2] if name in row) for row in items})
    if len(found) > 1:
        raise ConfigError(
            f"these rows are of {len(found)} rollouts, and a transcript shows one: choose it, for example with "
            f"trajectories.query('task_index == {found[0][0]} and rollout_index == {found[0][-1]}')"
        )


def _paired(items: Iterable[Mapping[str, Any]], known: Mapping[int, Mapping[str, Any]]) -> list[Piece]:
    found: list[Piece] = []
    waiting: dict[str | None, list[Piece]] = {}
    for row in items:
        piece = _piece(row)
        if piece.kind == OUTPUT and waiting.get(piece.call_id):
            waiting[piece.call_id].pop(0).text = piece.text or ""
            continue
        if piece.kind == CALL:
            waiting.setdefault(piece.call_id, []).append(piece)
            of_call = known.get(row.get("item_index") or 0, {})
            piece.error, piece.seconds = of_call.get("error"), of_call.get("seconds")
        found.append(piece)
    return found


def _piece(row: Mapping[str, Any]) -> Piece:
    fields = ("role", "text", "name", "arguments", "call_id", "origin", "step", "executed")
    kind = row.get("kind") or "item"
    values = {field: row.get(field) for field in fields}
    return Piece(kind, **({**values, "text": None} if kind == CALL else values))


def asked(record: Mapping[str, Any]) -> list[Piece]:
    """Return what the agent was asked first, as the row of an attempt without a result has it."""
    params = record.get("responses_create_params")
    given = params.get("input") if isinstance(params, dict) else None
    if isinstance(given, str):
        return [Piece("message", role="user", text=given, origin="task")]
    items = [item for item in given or [] if isinstance(item, dict)] if isinstance(given, list) else []
    return [
        Piece(str(item.get("type") or "message"), role=_word(item.get("role")), text=_said(item), origin="task")
        for item in items
    ]


def _word(value: Any) -> str | None:
    return None if value is None else str(value)


def _said(item: Mapping[str, Any]) -> str:
    content = item.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return "".join([str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text") is not None])
