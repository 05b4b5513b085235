from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from gymkit.errors import WireError
from gymkit.wire.problems import sentences
from gymkit.wire.tasks import (
    EpisodeId,
    MaterializedTask,
    TaskId,
    TaskRow,
    capture_key_of,
    episode_of,
    flat_task,
    is_materialized,
    materialized,
    strip_result_fields,
)
from tests.wire.builders import answer, response, task

STALE = {
    "reward": 1.0,
    "response": response(answer()),
    "error": "x",
    "mask_sample": False,
    "failure_kind": "timeout",
    "failure_reason": None,
    "reward_components": {"a": 1.0},
    "gymkit": {"run": "0" * 12},
    "_ng_task_index": 3,
    "_ng_failure_class": "remote_agent_error",
    "_ng_no_persist": True,
    "ng_trajectory": {},
    "ng_perf": {},
}


def test_a_result_row_becomes_its_task_again() -> None:
    row = task(expected_count=3, verifier_metadata={"reward": 1}, agent_ref={"name": "a"})
    result = {**row, **STALE}
    assert strip_result_fields(result) == row
    assert result["reward"] == 1.0, "the row that was given is left alone"


@given(st.dictionaries(st.sampled_from([*STALE, "ng", "_ng", "rewards", "id", "ngram", "x_ng_y"]), st.integers()))
def test_only_result_fields_go_and_the_order_stays(row: dict[str, int]) -> None:
    kept = strip_result_fields(row)
    assert list(kept.items()) == [(key, value) for key, value in row.items() if key not in STALE]
    assert strip_result_fields(kept) == kept


def refusal(model: type[BaseModel], data: Any) -> list[str]:
    with pytest.raises(ValidationError) as raised:
        model.model_validate(data)
    return sentences(raised.value, data)


class Counting(TaskRow):
    expected_count: int


def test_a_task_row_keeps_what_it_does_not_name() -> None:
    row = task(expected_count=3, verifier_metadata={"secret": [1]})
    read = Counting.model_validate(row)
    assert read.expected_count == 3
    assert read.model_dump() == row


def test_all_problems_of_a_task_row_are_told_at_once() -> None:
    row = {"responses_create_params": {"input": [{"role": "usr", "content": "x"}], "tools": None}}
    assert refusal(Counting, row) == [
        "responses_create_params.input[0].role: must be 'user', 'assistant', 'system' or 'developer', not 'usr'",
        "responses_create_params.tools: must be a list, not null",
        "expected_count: is missing",
    ]
    assert refusal(Counting, {"expected_count": 1}) == ["responses_create_params: is missing"]


def test_the_capture_key_names_the_attempt() -> None:
    assert EpisodeId(rollout_id="3-0").capture_key == "3-0"
    assert EpisodeId(rollout_id="3-0", attempt=2).capture_key == "3-0-a2"


@pytest.mark.parametrize("rollout_id", ["", "-1", ".x", "a b", "a/b", "é", "a\n", "x-a1", "x-a10", "a-a2-a1", 3, None])
def test_rollout_ids_that_are_refused(rollout_id: Any) -> None:
    assert refusal(EpisodeId, {"rollout_id": rollout_id})


@pytest.mark.parametrize("rollout_id", ["0-0", "A", "9.b_c-d", "x-a0", "x-a01", "x-b1", "x-a1b", "a1"])
def test_rollout_ids_that_are_taken(rollout_id: str) -> None:
    assert EpisodeId.model_validate({"rollout_id": rollout_id}).attempt == 0


@given(st.lists(st.tuples(st.from_regex(r"[a-z0-9](-?a?[0-9]?){0,3}", fullmatch=True), st.integers(0, 12)), max_size=6))
def test_no_two_episodes_share_a_capture_key(pairs: list[tuple[str, int]]) -> None:
    episodes = set()
    for rollout_id, attempt in pairs:
        try:
            episodes.add(EpisodeId(rollout_id=rollout_id, attempt=attempt))
        except ValidationError:
            continue
    assert len({episode.capture_key for episode in episodes}) == len(episodes)


@pytest.mark.parametrize(
    ("model", "data", "expected"),
    [
        (EpisodeId, {"rollout_id": "a", "attempt": -1}, ["attempt: must be greater than or equal to 0"]),
        (EpisodeId, {"rollout_id": "a-a1"}, ["rollout_id: must not end in -a and a number, which marks a retry"]),
        (EpisodeId, {"rollout_id": "a", "try": 1}, ["try: is not a field of this object"]),
        (TaskId, {"taskset": "", "task_id": ""}, [
            "taskset: must have at least 1 character", "task_id: must have at least 1 character",
        ]),
        (TaskId, {"taskset": "a", "task_id": 3}, ["task_id: must be text, not 3"]),
        (MaterializedTask, {"task_id": {"taskset": "a", "task_id": "b"}}, ["task_input: is missing"]),
        (MaterializedTask, {"task_id": "b", "task_input": {}}, ["task_id: must be an object, not 'b'"]),
    ],
)  # fmt: skip
def test_identities_are_strict(model: type[BaseModel], data: Any, expected: list[str]) -> None:
    assert refusal(model, data) == expected


def test_ids_can_be_keys() -> None:
    assert len({TaskId(taskset="a", task_id="b"), TaskId(taskset="a", task_id="b")}) == 1
    with pytest.raises(ValidationError):
        TaskId(taskset="a", task_id="b").task_id = "c"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("row", "materialized"),
    [
        ({"task_id": {}, "task_input": None}, True),
        ({"task_id": {"taskset": "a", "task_id": "b"}, "task_input": {}, "_ng_task_index": 0}, True),
        ({"task_id": {}}, False),
        ({"task_id": "7", "task_input": {}}, False),
        (task(), False),
    ],
)
def test_a_materialized_row_is_told_by_its_shape(row: dict[str, Any], materialized: bool) -> None:
    assert is_materialized(row) is materialized


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({}, None),
        ({"_ng_task_index": 3}, None),
        ({"_ng_task_index": 3, "_ng_rollout_index": 1}, "3-1"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": 2}, "3-1-a2"),
        ({"_ng_rollout_id": "mine"}, "mine"),
        ({"_ng_rollout_id": "mine", "_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": 1}, "mine-a1"),
    ],
)
def test_the_episode_that_a_planned_row_is(row: dict[str, Any], key: str | None) -> None:
    assert capture_key_of(row) == key


@pytest.mark.parametrize(
    "row",
    [
        {"_ng_rollout_id": "-x"},
        {"_ng_rollout_id": "x-a1"},
        {"_ng_rollout_id": 5},
        {"_ng_rollout_id": "x", "_ng_attempt_index": -1},
    ],
)
def test_a_name_that_cannot_be_used_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="the rollout's name"):
        episode_of(row)


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 1)),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 1)),
)
def test_fields_come_on_one_level_unless_they_contradict_each_other(
    around: dict[str, int], inside: dict[str, int]
) -> None:
    if any(around[key] != inside[key] for key in around.keys() & inside.keys()):
        with pytest.raises(ValueError, match="differs"):
            flat_task({**around, "task_data": inside})
    else:
        assert flat_task({**around, "task_data": inside}) == {**inside, **around}
    assert flat_task(around) == around


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"task_id": "a", "problem_id": "b", "_ng_task_index": 7}, "a"),
        ({"problem_id": 5, "instance_id": "c"}, "5"),
        ({"task_id": None, "instance_id": "c"}, "c"),
        ({"_ng_task_index": 0}, "0"),
    ],
)
def test_a_flat_row_becomes_an_episodes_task(fields: dict[str, Any], name: str) -> None:
    row = {**task(), **fields, "agent_ref": {"name": "x"}, "task_source": "y", "skills_ref": {}, "_ng_rollout_index": 1}
    made = materialized(row, "set")
    assert made.task_id == TaskId(taskset="set", task_id=name)
    kept = {key: value for key, value in fields.items() if not key.startswith("_ng_")}
    assert made.task_input == {**task(), **kept}


def test_a_flat_row_without_a_name_is_refused() -> None:
    with pytest.raises(WireError, match="problem_id"):
        materialized(task(), "set")
