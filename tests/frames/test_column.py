from typing import Any

import pandas as pd
import pytest

from gymkit.frames import failures, masks, rewards, tasks, tool_calls, trajectories
from gymkit.frames.column import Builder, Column, array, conform

GRAINS = [tasks, rewards, masks, trajectories, tool_calls, failures]
DTYPES = {"Int64", "Float64", "boolean", "string", "category", "datetime64[us, UTC]"}

COLUMNS: tuple[Column[dict[str, Any]], ...] = (
    Column("number", "Int64", lambda it: it.get("number"), "a number"),
    Column("state", "category", lambda it: it.get("state"), "a state", ("on", "off")),
    Column("words", "string", lambda it: it.get("words"), "words"),
)


def built(*rows: dict[str, Any]) -> pd.DataFrame:
    builder = Builder(COLUMNS)
    for row in rows:
        builder.add(row)
    return builder.frame()


def test_a_frame_without_rows_has_the_same_columns_and_dtypes() -> None:
    empty, full = built(), built({"number": 1, "state": "on", "words": "hello"})
    assert empty.dtypes.equals(full.dtypes)
    assert empty.columns.tolist() == ["number", "state", "words"]
    assert len(empty) == 0


def test_categories_are_the_known_ones_then_the_others_as_they_come() -> None:
    frame = built({"state": "later"}, {"state": "off"}, {}, {"state": 7}, {"state": ["list"]}, {"state": "later"})
    assert frame.state.cat.categories.tolist() == ["on", "off", "later", "7", '["list"]']
    assert frame.state.tolist()[:2] == ["later", "off"]
    assert frame.state.isna().tolist() == [False, False, True, False, False, False]


def test_many_rows_are_the_same_as_few() -> None:
    """More rows than one flush holds, so that the parts are joined."""
    count = 20_001
    frame = built(*({"number": n, "state": f"s{n % 3}", "words": f"w{n}"} for n in range(count)))
    assert frame.number.tolist() == list(range(count))
    assert frame.state.tolist() == [f"s{n % 3}" for n in range(count)]
    assert frame.words.tolist() == [f"w{n}" for n in range(count)]
    assert frame.index.equals(pd.RangeIndex(count))


def test_rows_with_much_text_are_flushed_early() -> None:
    builder = Builder(COLUMNS)
    for _ in range(3):
        builder.add({"words": "x"}, size=3 * 2**20)
    assert builder.frame().words.tolist() == ["x"] * 3


def test_conform_gives_dtypes_back_and_leaves_other_columns() -> None:
    frame = built({"number": 2**60 + 1, "state": "\ud800", "words": "\ud800"}).assign(other=1)
    lost = frame.assign(
        number=frame.number.astype(object), state=frame.state.astype(object), words=frame.words.astype(object)
    )
    again = conform(lost, COLUMNS)
    pd.testing.assert_frame_equal(again, frame)


def test_array_of_each_dtype() -> None:
    for dtype in DTYPES:
        assert str(pd.Series(array(dtype, [None])).dtype) == dtype


@pytest.mark.parametrize("grain", GRAINS, ids=lambda grain: grain.__name__.rpartition(".")[2])
def test_every_column_is_declared_with_a_dtype_and_a_meaning(grain: Any) -> None:
    names = [column.name for column in grain.COLUMNS]
    assert names[0] == "task_index"
    assert grain is tasks or names[:3] == ["task_index", "rollout_index", "attempt"]
    assert len(set(names)) == len(names)
    assert {column.dtype for column in grain.COLUMNS} <= DTYPES
    assert all(len(column.meaning) > 8 and "\n" not in column.meaning for column in grain.COLUMNS)
