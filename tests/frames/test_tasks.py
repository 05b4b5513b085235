from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gymkit.frames import tasks
from gymkit.frames.records import Records
from tests.frames.samples import Row, nemo, params, planned, write_run


def field(*values: Any) -> "pd.Series[Any]":
    rows = [{"responses_create_params": params()} | ({} if value is ... else {"field": value}) for value in values]
    return tasks.frame(rows)["field"]


def test_input_rows_are_numbered_by_position_unless_they_say(tmp_path: Path) -> None:
    rows = [{"responses_create_params": params("one"), "level": "easy"}, {"responses_create_params": params("two")}]
    table = tasks.frame([*rows, {"_ng_task_index": 9, "responses_create_params": {"input": "three"}, "task_id": "t"}])
    assert table.task_index.tolist() == [0, 1, 9]
    assert table.task_id.tolist() == ["0", "1", "t"]
    assert table.prompt.tolist() == ["one", "two", "three"]
    assert table.tools.tolist() == [2, 2, 0]
    assert table.columns.tolist() == ["task_index", "task_id", "prompt", "tools", "level"]


@pytest.mark.parametrize(
    ("values", "dtype", "cells"),
    [
        ([True, None, False], "boolean", [True, pd.NA, False]),
        ([1, 2**53 + 1, ...], "Int64", [1, 2**53 + 1, pd.NA]),
        ([1, 0.5], "Float64", [1.0, 0.5]),
        ([2**53 + 1, 0.5], "string", ["9007199254740993", "0.5"]),
        ([2**64, 1], "string", ["18446744073709551616", "1"]),
        (["a", None, ...], "string", ["a", pd.NA, pd.NA]),
        (["a", 1, True, 0.5], "string", ["a", "1", "true", "0.5"]),
        ([True, 1], "string", ["true", "1"]),
        (["a", [1], {}], "string", ["a", pd.NA, pd.NA]),
        (["\ud800\u2028"], "string", ["\U0010d800\u2028"]),
    ],
)
def test_a_field_has_the_dtype_of_what_it_holds(values: list[Any], dtype: str, cells: list[Any]) -> None:
    column = field(*values)
    assert str(column.dtype) == dtype
    assert column.tolist() == cells


def test_only_plain_fields_of_the_task_have_a_column() -> None:
    row = planned(0, verifier_metadata={"answer": 1}, tags=["a"], task_source="x", nothing=None, _ng_rollout_id="r")
    result = nemo(1, level=3, error="e", ng_perf=1)
    assert tasks.frame([row, result]).columns[4:].tolist() == ["expected_count", "initial_count", "level"]


def test_a_field_with_the_name_of_a_column_gets_another() -> None:
    table = tasks.frame([{"responses_create_params": params("asked"), "prompt": "theirs", "tools": 7}])
    assert table.prompt.tolist() == ["asked"]
    assert table["row.prompt"].tolist() == ["theirs"]
    assert table["row.tools"].tolist() == [7]


def test_a_row_in_the_form_of_an_environment_server() -> None:
    data = {"responses_create_params": params("inner"), "task_data": {"level": 2}}
    (row,) = tasks.frame([{"task_id": {"taskset": "s", "task_id": "name"}, "task_input": data}]).itertuples()
    assert (row.task_id, row.prompt, row.tools, row.level) == ("name", "inner", 2, 2)


@pytest.mark.parametrize("asked", [None, 7, [], ["text"], [{"role": "system", "content": "s"}], {"role": "user"}])
def test_a_task_without_a_user_message_has_no_prompt(asked: Any) -> None:
    row: Row = {"responses_create_params": {"input": asked, "tools": None}}
    table = tasks.frame([row, {"responses_create_params": asked}, {}])
    assert table.prompt.isna().all()
    assert table.tools.tolist() == [0, 0, 0]


def test_the_last_message_of_the_user_is_the_prompt() -> None:
    said = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "no"}]
    last = {"role": "user", "type": "message", "content": [{"type": "input_text", "text": "last"}]}
    assert tasks.frame([{"responses_create_params": {"input": [*said, last]}}]).prompt.tolist() == ["last"]


def test_without_tasks_the_columns_and_dtypes_are_the_same() -> None:
    empty, full = tasks.frame([]), tasks.frame([{"responses_create_params": params()}])
    assert empty.dtypes.equals(full.dtypes)


def test_the_tasks_of_a_run_join_its_rewards(tmp_path: Path) -> None:
    plan = [planned(task, rollout, level=task) for task in (1, 0) for rollout in range(2)]
    table = tasks.frame(Records(write_run(tmp_path, plan=plan)).tasks())
    assert table.task_index.tolist() == table.level.tolist() == [0, 1]
