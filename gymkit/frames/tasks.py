"""One row per task: what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd
from pandas.api.extensions import ExtensionArray

from gymkit.frames.cells import integer
from gymkit.frames.column import Builder, Column, array
from gymkit.frames.text import storable
from gymkit.wire.responses import message_text
from gymkit.wire.tasks import RESERVED_KEYS, strip_result_fields

Task = tuple[int, Mapping[str, Any]]

TAKEN: Final = "row."
"""Prefix of a task's own field whose name is that of one of our columns."""

_NAMES: Final = ("task_id", "problem_id", "instance_id")


def _name(task: Task) -> Any:
    index, row = task
    names = (name.get("task_id") if isinstance(name, dict) else name for name in map(row.get, _NAMES))
    return next((name for name in names if name is not None), index)


def _params(task: Task) -> Mapping[str, Any]:
    params = _fields(task[1]).get("responses_create_params")
    return params if isinstance(params, Mapping) else {}


def _prompt(task: Task) -> str | None:
    asked = _params(task).get("input")
    if isinstance(asked, str):
        return asked
    messages = [item for item in asked if isinstance(item, dict)] if isinstance(asked, list) else []
    users = [item for item in messages if item.get("role") == "user"]
    return message_text(users[-1]) if users else None


def _tools(task: Task) -> int:
    tools = _params(task).get("tools")
    return len(tools) if isinstance(tools, list) else 0


COLUMNS: Final[tuple[Column[Task], ...]] = (
    Column("task_index", "Int64", lambda it: it[0], "number of the task"),
    Column("task_id", "string", _name, "name of the task; its number where it has none"),
    Column("prompt", "string", _prompt, "text of the last message of the user"),
    Column("tools", "Int64", _tools, "number of tools that the task offers"),
)
"""The columns; behind them comes a column for each other field of the rows that holds plain values."""


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the tasks of ``rows`` (an input file's, or ``Records.tasks()``), in their order: ``COLUMNS``, then fields.

    A row without ``_ng_task_index`` is numbered by its position. A field of the rows becomes a column by what it holds:
    ``boolean``, ``Int64``, ``Float64`` or ``string``. Where the kinds are mixed it is ``string``: text as it is, the
    rest as JSON. Lists and objects have no column.
    """
    builder = Builder(COLUMNS)
    plain: list[dict[str, Any]] = []
    for position, row in enumerate(rows):
        index = integer(row.get("_ng_task_index"))
        builder.add((position if index is None else index, row))
        plain.append({key: value for key, value in _fields(row).items() if _is_news(key, value, (position, row))})
    return builder.frame(_field_columns(plain))


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task's own fields, wherever its form of row keeps them, and ``responses_create_params``."""
    inner = row.get("task_input")
    fields = strip_result_fields(inner if isinstance(inner, dict) else row)
    data = fields.get("task_data")
    return fields | data if isinstance(inner, dict) and isinstance(data, dict) else fields


def _is_news(key: str, value: Any, task: Task) -> bool:
    """Whether a field has a place in a column of its own: plain, and not what ``prompt`` says already."""
    return not isinstance(value, dict | list) and not (key == "prompt" and value == _prompt(task))


def _field_columns(plain: Sequence[Mapping[str, Any]]) -> dict[str, ExtensionArray]:
    taken = {column.name for column in COLUMNS}
    keys = dict.fromkeys(key for fields in plain for key, value in fields.items() if value is not None)
    found = {}
    for key in keys.keys() - RESERVED_KEYS - set(_NAMES[:1]):
        name = storable(key)
        found[TAKEN + name if name in taken else name] = _field_column([fields.get(key) for fields in plain])
    return {name: found[name] for name in sorted(found)}


def _field_column(values: Sequence[Any]) -> ExtensionArray:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return array("boolean", values)
    if kinds == {int} and all(value is None or integer(value) is not None for value in values):
        return array("Int64", values)
    if kinds == {float} or (kinds == {int, float} and _exact_as_floats(values)):
        return array("Float64", values)
    return array("string", values)


def _exact_as_floats(values: Sequence[Any]) -> bool:
    return all(abs(value) <= 2**53 for value in values if type(value) is int)
