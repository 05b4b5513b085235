from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gymkit.frames import tool_calls, trajectories
from gymkit.frames.records import Records
from gymkit.wire.responses import message_text
from tests.frames.samples import Row, call, conversation, facts_of, message, nemo, ours, output, params, write_run

REASONING = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "think"}]}


def items_of(folder: Path, *rows: Row, keys: Any = None) -> pd.DataFrame:
    return trajectories.frame(Records(write_run(folder, rows)), keys)


def calls_of(folder: Path, *rows: Row) -> pd.DataFrame:
    return tool_calls.frame(Records(write_run(folder, rows)))


def facts(steps: int | None, *calls: tuple[int, int]) -> Row:
    listed = [{"item": item, "step": step, "error": None, "seconds": 0.5} for item, step in calls]
    return {"steps": steps, "calls": listed}


def steps(folder: Path, items: list[Row], told: Row) -> list[int | None]:
    column = items_of(folder, ours(0, items=items, gymkit=told)).step
    return [None if step is pd.NA else step for step in column][1:]


def test_a_rollout_of_ours_item_by_item(tmp_path: Path) -> None:
    table = items_of(tmp_path, ours(3, 1, attempt=2, items=conversation(2)))
    assert set(zip(table.task_index, table.rollout_index, table.attempt, strict=True)) == {(3, 1, 2)}
    assert table.item_index.tolist() == [0, 1, 2, 3, 4, 5]
    assert table.origin.tolist() == ["task", "agent", "environment", "agent", "environment", "agent"]
    assert table.step.tolist() == [pd.NA, 1, 1, 2, 2, 3]
    assert table.kind.tolist()[:3] == ["message", "function_call", "function_call_output"]
    assert table.role.tolist()[0] == "user" and table.role.tolist()[5] == "assistant"
    assert table.name.tolist()[1] == "increment_counter"
    assert table.text.tolist() == [
        "add 7 then add 8 then get the count",
        pd.NA,
        '{"success":true}',
        pd.NA,
        '{"success":true}',
        "The count is 24.",
    ]
    assert table.arguments.tolist()[1] == '{"count": 7}'
    assert table.call_id.tolist()[1:3] == ["call_0", "call_0"]
    assert table.executed.tolist() == [pd.NA, True, True, True, True, pd.NA]


def test_what_nemo_gym_does_not_say_is_na(tmp_path: Path) -> None:
    table = items_of(tmp_path, nemo(0, items=conversation(1)))
    assert table.origin.isna().tolist() == [False, False, True, False]
    assert table.step.isna().all()
    assert table.executed.isna().all()


def test_the_agents_own_record_is_not_executed(tmp_path: Path) -> None:
    own = [call("a", "search"), output("a", "found"), message("done")]
    row = ours(0, items=own, gymkit=facts(1))
    table = items_of(tmp_path, row)
    assert table.origin.tolist() == ["task", "agent", "agent", "agent"]
    assert table.executed.tolist() == [pd.NA, False, False, pd.NA]
    (asked,) = calls_of(tmp_path, row).itertuples()
    assert (asked.output, asked.executed, asked.seconds) == ("found", False, pd.NA)


def test_steps_where_the_row_determines_them(tmp_path: Path) -> None:
    parallel = [REASONING, call("a"), call("b"), output("a"), output("b"), REASONING, message("done")]
    assert steps(tmp_path, parallel, facts(2, (3, 1), (4, 1))) == [1, 1, 1, 1, 1, 2, 2]


def test_a_step_that_cannot_be_told_is_na(tmp_path: Path) -> None:
    """A reply without a call came in between: the reasoning is of step 2 or of step 3, the call surely of step 3."""
    items = [call("a"), output("a"), REASONING, call("b"), output("b"), message("done")]
    assert steps(tmp_path, items, facts(4, (1, 1), (4, 3))) == [1, 1, None, 3, 3, 4]
    assert steps(tmp_path, items, facts(None, (1, 1), (4, 2))) == [1, 1, 2, 2, 2, None]
    assert steps(tmp_path, [REASONING, message("done")], facts(2)) == [None, None]


def test_a_call_pairs_with_the_next_output_of_its_id(tmp_path: Path) -> None:
    items = [call("x", "first"), output("x", "1"), call("x", "second"), output("x", "2"), output("y", "3"), call("z")]
    table = calls_of(tmp_path, nemo(0, items=items))
    assert table.name.tolist() == ["first", "second", "increment_counter"]
    assert table.output.tolist() == ["1", "2", pd.NA]
    assert table.item_index.tolist() == [1, 3, 6]


def test_calls_tell_what_went_wrong_and_how_long_it_took(tmp_path: Path) -> None:
    items = [call("a", "nothing"), output("a", "no such tool"), call("b"), output("b", ""), message("done")]
    told = facts_of(items)
    told["calls"][0]["error"] = "undeclared"
    row = ours(0, items=[*items, call("c")], gymkit=told)
    table = calls_of(tmp_path, row)
    assert table.error.astype(object).fillna("").tolist() == ["undeclared", "", ""]
    assert table.output.tolist() == ["no such tool", "", pd.NA]
    assert table.executed.tolist() == [True, True, pd.NA]
    assert table.seconds.tolist() == [0.0004, 0.0004, pd.NA]
    assert table.error.cat.categories.tolist() == ["undeclared", "malformed", "failed"]


def test_calls_of_the_task_are_no_part_of_the_rollout(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "before"}, call("old"), output("old"), {"role": "user", "content": "now"}]
    row = ours(0, items=conversation(1), responses_create_params=params() | {"input": history})
    table = items_of(tmp_path, row)
    assert table.origin.tolist()[:5] == ["task", "task", "task", "task", "agent"]
    assert calls_of(tmp_path, row).item_index.tolist() == [4]


def test_the_two_item_frames_join_on_their_ids(tmp_path: Path) -> None:
    rows = [ours(0), ours(1, items=conversation(1))]
    ids = ["task_index", "rollout_index", "attempt", "item_index"]
    joined = calls_of(tmp_path, *rows).merge(items_of(tmp_path, *rows), on=ids, suffixes=("", "_item"))
    assert len(joined) == 4
    assert joined.arguments.equals(joined.arguments_item)


@pytest.mark.parametrize("asked", ["just text", [{"role": "user", "content": "just text"}]])
def test_an_input_may_be_text_or_items(tmp_path: Path, asked: Any) -> None:
    first = items_of(tmp_path, ours(0, responses_create_params={"input": asked})).iloc[0]
    assert (first.kind, first.role, first.text, first.origin) == ("message", "user", "just text", "task")


@pytest.mark.parametrize(
    "content", [None, "", "text", [], [{"text": "a"}, {"refusal": "b"}, {"type": "input_image"}], ["x"]]
)
def test_the_text_of_a_message_is_that_of_the_wire(tmp_path: Path, content: Any) -> None:
    item = {"type": "message", "role": "assistant", "content": content}
    assert items_of(tmp_path, nemo(0, items=[item])).text.tolist()[1] == message_text(item)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (REASONING, "think"),
        (REASONING | {"content": [{"type": "reasoning_text", "text": "deep"}], "summary": []}, "deep"),
        (REASONING | {"summary": []}, ""),
        (output("a", [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]), "onetwo"),
        (output("a", {"not": "text"}), '{"not":"text"}'),
        ({"type": "web_search_call", "id": "w"}, None),
        ({"type": "mcp_call", "id": "m", "name": "n", "output": "answer"}, "answer"),
    ],
)
def test_the_text_of_other_items(tmp_path: Path, item: Row, text: str | None) -> None:
    found = items_of(tmp_path, nemo(0, items=[item])).text.tolist()[1]
    assert (None if found is pd.NA else found) == text


HOSTILE = "<script>alert(1)</script>\x1b[31m\u202eevil\u200b\x00=cmd()|'\ud83d"


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    rows = nemo(0, items=[call("c", HOSTILE, HOSTILE), output("c", HOSTILE), message(HOSTILE)])
    table = items_of(tmp_path, rows)
    stored = HOSTILE.replace("\ud83d", "\U0010d83d")
    assert table.text.tolist()[2:] == [stored, stored]
    assert (table.name[1], table.arguments[1]) == (stored, stored)


def test_a_selection_is_the_same_as_the_part_of_the_whole(tmp_path: Path) -> None:
    rows = [ours(task, rollout, items=conversation(task)) for task in (2, 0, 1) for rollout in (1, 0)]
    whole = items_of(tmp_path, *rows)
    part = items_of(tmp_path, *rows, keys=[(2, 0), (0, 1), (7, 7)])
    wanted = [(0, 1), (2, 0)]
    same = whole[[key in wanted for key in zip(whole.task_index, whole.rollout_index, strict=True)]]
    assert part.text.tolist() == same.text.tolist()
    assert part.columns.equals(whole.columns)


def test_without_results_the_columns_and_dtypes_are_the_same(tmp_path: Path) -> None:
    for of in (items_of, calls_of):
        empty, full = of(tmp_path), of(tmp_path, ours(0))
        assert len(empty) == 0
        assert empty.dtypes.astype(str).equals(full.dtypes.astype(str))
