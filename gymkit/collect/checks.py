"""What is wrong with a task row, before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from gymkit.errors import WireError
from gymkit.wire import codec
from gymkit.wire.problems import sentences
from gymkit.wire.responses import check_request
from gymkit.wire.tasks import TaskId, flat_task, is_materialized

CheckTask = Callable[[Mapping[str, Any]], list[str]]
"""What an environment asks of a task's fields: one ``field: reason`` for each that is wrong."""

MAX_INDEX = 2**53
"""Bound of a task's index: the last whole number that every reader of JSON keeps."""

_PARAMS = "responses_create_params"


def fields_of(model: type[BaseModel]) -> CheckTask:
    """Make a check from a pydantic model of the task."""

    def check(row: Mapping[str, Any]) -> list[str]:
        try:
            model.model_validate(row)
        except ValidationError as error:
            return sentences(error, row)
        return []

    return check


def row_problems(row: Mapping[str, Any], check_task: CheckTask | None, *, add_seed: bool) -> Iterator[str]:
    """Yield one ``field: reason`` for each thing that keeps ``row`` from being run."""
    if is_materialized(row):
        yield from _materialized_problems(row, check_task)
    else:
        yield from _flat_problems(row, check_task, add_seed)


def index_problems(index: object) -> Iterator[str]:
    """Yield what is wrong with the ``_ng_task_index`` that a row brings."""
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < MAX_INDEX:
        yield f"_ng_task_index: must be a whole number from 0 on, not {index!r:.40}"


def params_problems(params: Any) -> list[str]:
    """One ``path: reason`` for each thing that is wrong with ``responses_create_params``."""
    if not isinstance(params, dict):
        return [f"{_PARAMS}: must be an object, not {_kind(params)}"]
    try:
        check_request(params)
    except WireError as error:
        return [f"{_PARAMS}.{problem}" for problem in error.problems]
    return []


def extra_body(params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in ``metadata.extra_body``, a JSON object in a string. Raises ValueError."""
    text = (params.get("metadata") or {}).get("extra_body")
    if text is None:
        return {}
    settings = codec.loads(text.encode("utf-8", "surrogatepass"))
    if not isinstance(settings, dict):
        raise ValueError("it must hold a JSON object")
    return settings


def _flat_problems(row: Mapping[str, Any], check_task: CheckTask | None, add_seed: bool) -> Iterator[str]:
    found = params_problems(row[_PARAMS]) if _PARAMS in row else [f"{_PARAMS}: is missing"]
    if add_seed and not found:
        try:
            extra_body(row[_PARAMS])
        except ValueError as error:
            found = [f"{_PARAMS}.metadata.extra_body: cannot take a seed: {error}"]
    yield from found
    for problem in check_task(row) if check_task else ():
        if not (found and problem.startswith(_PARAMS)):  # said above already, and in fewer words
            yield problem


def _materialized_problems(row: Mapping[str, Any], check_task: CheckTask | None) -> Iterator[str]:
    try:
        TaskId.model_validate(row["task_id"])
    except ValidationError as error:
        yield from (f"task_id.{problem}" for problem in sentences(error, row["task_id"]))
    task = row["task_input"]
    if not isinstance(task, dict):
        yield f"task_input: must be an object, not {_kind(task)}"
    elif check_task:
        yield from (f"task_input.{problem}" for problem in _on_one_level(task, check_task))


def _on_one_level(task: dict[str, Any], check_task: CheckTask) -> list[str]:
    try:
        return check_task(flat_task(task))
    except (ValueError, AttributeError) as error:  # fields that contradict each other, or task_data that is no object
        return [str(error)]


def _kind(value: object) -> str:
    return "null" if value is None else f"a JSON {type(value).__name__}"
