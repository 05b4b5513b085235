"""Task rows of a defined environment: what its author gave, and what an agent is asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from gymkit.collect.tasks import Tasks
from gymkit.errors import ConfigError, InputError
from gymkit.sdk.collection import TaskSource
from gymkit.servers.tool import encoded
from gymkit.wire import codec
from gymkit.wire.tasks import RESULT_KEYS, strip_result_fields

if TYPE_CHECKING:
    import pandas as pd

PARAMS: Final = "responses_create_params"

Row = dict[str, Any]


def given(tasks: TaskSource | pd.DataFrame) -> list[Row]:
    """The rows as their author gave them, each a JSON object of its own. Raises InputError, or ConfigError for none."""
    if isinstance(tasks, str | os.PathLike):
        with Tasks.from_path(tasks) as file:
            rows: Sequence[Any] = file.rows()
            return _checked(rows, [file.place(line.number) for line in file.lines()])
    if _is_frame(tasks):
        from gymkit.frames import given  # pandas is loaded already: somebody made the frame

        rows = given.rows(tasks)
    else:
        rows = list(tasks)
    return _checked(rows, [f"tasks[{place}]" for place in range(len(rows))])


def asked(rows: Iterable[Row], tools: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows with ``responses_create_params``: made of the field ``prompt`` where there is none, ``tools`` put in.

    A row that declares tools of its own keeps them.
    """
    return [{PARAMS: _params(row, tools), **{key: row[key] for key in row if key != PARAMS}} for row in rows]


def _params(row: Row, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if PARAMS not in row:
        prompt = row["prompt"]
        said = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return {"input": said, "tools": [dict(tool) for tool in tools]}
    own: dict[str, Any] = row[PARAMS]
    return own if "tools" in own or not tools else {**own, "tools": [dict(tool) for tool in tools]}


def _checked(rows: Sequence[Any], places: Sequence[str]) -> list[Row]:
    if not rows:
        raise ConfigError("an environment needs at least one task: tasks= takes a DataFrame, a list of dicts, a file")
    problems: list[str] = []
    checked = [_row(row, place, problems) for row, place in zip(rows, places, strict=True)]
    if problems:
        raise InputError(problems)
    return checked


def _row(row: Any, place: str, problems: list[str]) -> Row:
    if not isinstance(row, Mapping):
        problems.append(f"{place}: must be a dict of fields, not {row!r:.60}")
        return {}
    try:
        plain: Row = codec.loads(encoded(dict(row)))
    except (TypeError, ValueError) as error:
        problems.append(f"{place}: is no JSON object: {error}")
        return {}
    if PARAMS in plain:
        if not isinstance(plain[PARAMS], dict):
            problems.append(f"{place}: {PARAMS} must be an object")
        return strip_result_fields(plain)
    problems += [f"{place}: {problem}" for problem in _field_problems(plain)]
    return plain


def _field_problems(row: Row) -> Iterable[str]:
    """What is wrong with a row that says only ``prompt``: a name of a result in it would be dropped unseen."""
    for name in row:
        if name in RESULT_KEYS or name.startswith(("_ng_", "ng_")):
            yield f"{name}: is the name of a result's field, which a task cannot have: call it something else"
    prompt = row.get("prompt")
    if not isinstance(prompt, str | list):
        got = "is missing" if prompt is None else f"must be text or a list of messages, not {prompt!r:.40}"
        yield f"prompt: {got}; it is what the agent is asked (or give {PARAMS})"


def _is_frame(tasks: object) -> TypeGuard[pd.DataFrame]:
    return hasattr(tasks, "columns") and hasattr(tasks, "iloc")
