from __future__ import annotations

import json
import os
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from gymkit.collect.checks import CheckTask, fields_of
from gymkit.collect.fingerprint import differences, fingerprint
from gymkit.collect.plan import Expansion, plan_rollouts
from gymkit.collect.tasks import Tasks
from gymkit.errors import ConfigError, InputError
from gymkit.resources.counter import Counter as CounterServer
from gymkit.wire import codec
from tests.collect.world import TARGET, key_of, plan_of, task, tasks


def write(path: Path, *lines: bytes | dict[str, Any]) -> Path:
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else codec.dumps(line) for line in lines) + b"\n")
    return path


def problems_of(tasks: Tasks, *, check_task: CheckTask | None = None, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        plan_rollouts(tasks, replace(TARGET, check_task=check_task), **options)
    return caught.value.problems


def test_a_planned_row_is_the_task_with_its_stamps() -> None:
    plan = plan_of([task(expected_count=6)])
    (row,) = plan.rows()
    assert list(row) == [
        "responses_create_params",
        "expected_count",
        "agent_ref",
        "_ng_task_index",
        "_ng_rollout_index",
        "_ng_environment_server",
        "gymkit",
    ]
    assert row["agent_ref"] == {"name": "remote_agent"}
    assert row["_ng_environment_server"] == "remote_agent_environment_server"
    assert key_of(row) == (0, 0)
    assert row["gymkit"] == {"run": plan.run, "config": plan.config}
    assert len(plan.run) == 12


def test_only_the_first_row_carries_the_configuration() -> None:
    plan = plan_of(tasks(3))
    assert [sorted(row["gymkit"]) for row in plan.rows()] == [["config", "run"], ["run"], ["run"]]


def test_repeats_stand_together_or_take_turns() -> None:
    assert [key_of(row) for row in plan_of(tasks(2), repeats=2).rows()] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    taking_turns = plan_of(tasks(2), repeats=2, interleave=True)
    assert [key_of(row) for row in taking_turns.rows()] == [(0, 0), (1, 0), (0, 1), (1, 1)]


ROW_NUMBERS = st.lists(st.integers(0, 4), min_size=1, max_size=12)


@given(ROW_NUMBERS, st.integers(1, 3), st.booleans())
def test_each_planned_rollout_has_a_key_of_its_own(numbers: list[int], repeats: int, interleave: bool) -> None:
    plan = plan_of([task(str(number)) for number in numbers], repeats=repeats, interleave=interleave)
    rows = list(plan.rows())
    assert len(rows) == plan.total == len(numbers) * repeats
    assert len({key_of(row) for row in rows}) == plan.total
    per_task = Counter(row["_ng_task_index"] for row in rows)
    assert sorted(per_task.values()) == sorted(count * repeats for count in Counter(numbers).values())
    if interleave:
        assert [row["_ng_rollout_index"] for row in rows] == sorted(row["_ng_rollout_index"] for row in rows)


def test_lines_that_are_the_same_byte_for_byte_are_one_task(tmp_path: Path) -> None:
    first, second = codec.dumps(task("a")), codec.dumps(task("b"))
    path = write(tmp_path / "tasks.jsonl", first, second, b"", first, first.replace(b":", b": ", 1))
    with Tasks.from_path(path) as tasks:
        plan = plan_rollouts(tasks, TARGET, expansion=Expansion(repeats=2))
        keys = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (2, 0), (2, 1)]
        assert [key_of(row) for row in plan.rows()] == keys


def test_a_task_index_is_kept_and_the_others_go_around_it() -> None:
    rows = [task("a"), task("b", _ng_task_index=0), task("c"), task("d", _ng_task_index=7), task("e")]
    assert [row["_ng_task_index"] for row in plan_of(rows).rows()] == [1, 0, 2, 7, 3]


def test_an_old_result_is_a_new_task_without_its_result() -> None:
    old = task("a", _ng_task_index=7, reward=1.0, response={}, mask_sample=True, ng_perf={}, gymkit={}, note="kept")
    failed = task("b", _ng_task_index=7, _ng_failure_class="x", error="e", _ng_attempt_index=2)
    first, second = plan_of([old, failed]).rows()
    assert key_of(first) == (0, 0)
    assert key_of(second) == (1, 0)
    assert {*first, *second} == {
        *("responses_create_params", "note", "agent_ref", "gymkit"),
        *("_ng_task_index", "_ng_rollout_index", "_ng_environment_server"),
    }


def test_overrides_lie_over_the_rows_own_parameters() -> None:
    row = task()
    row["responses_create_params"] |= {"temperature": 0.5, "top_p": 0.9}
    (planned,) = plan_of([row], responses_create_params={"temperature": 0.0}).rows()
    assert planned["responses_create_params"] == {**row["responses_create_params"], "temperature": 0.0}


def test_a_seed_joins_the_extra_body() -> None:
    row = task()
    row["responses_create_params"]["metadata"] = {"note": "n", "extra_body": '{"top_k": 5}'}
    first, second = plan_of([row], repeats=2, add_seed=True).rows()
    assert first["responses_create_params"]["metadata"]["note"] == "n"
    bodies = [json.loads(each["responses_create_params"]["metadata"]["extra_body"]) for each in (first, second)]
    assert bodies == [{"top_k": 5, "seed": 0}, {"top_k": 5, "seed": 1}]


def test_limit_looks_at_the_first_rows_only(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.jsonl", task("a"), b"", task("b"), b"broken")
    with Tasks.from_path(path) as tasks:
        assert plan_rollouts(tasks, TARGET, expansion=Expansion(limit=2)).total == 2


def test_all_problems_are_told_at_once_with_their_line_and_field(tmp_path: Path) -> None:
    path = write(
        tmp_path / "tasks.jsonl",
        task(initial_count=1, expected_count=2),
        b'{"responses_create_params": ',
        b"",
        {"question": "?"},
        {"responses_create_params": [], "initial_count": 1, "expected_count": 1},
        task(initial_count="many"),
        {"responses_create_params": {"input": 5}, "initial_count": 1, "expected_count": 1},
        task(initial_count=1, expected_count=1, _ng_task_index=-1),
        b"[]",
        b'{"responses_create_params": {"input": ' + b"[" * 1010 + b"]" * 1010 + b"}}",
    )
    with Tasks.from_path(path) as tasks:
        told = problems_of(tasks, check_task=CounterServer.check_task)
    lines = [problem.removeprefix(f"{path}:") for problem in told]
    assert [line.split(": ")[:2] for line in lines] == [
        ["2", "the line is not JSON"],
        ["4", "responses_create_params"],
        ["4", "initial_count"],
        ["4", "expected_count"],
        ["5", "responses_create_params"],
        ["6", "initial_count"],
        ["6", "expected_count"],
        ["7", "responses_create_params.input"],
        ["8", "_ng_task_index"],
        ["9", "the line holds a JSON list, not an object"],
        ["10", "nested too deeply"],
    ]


def test_a_pydantic_model_can_say_what_a_task_needs() -> None:
    class Needs(BaseModel):
        answer: int

    assert problems_of(Tasks.from_rows([task(), task(answer=1), task(answer="x")]), check_task=fields_of(Needs)) == [
        "rows[0]: answer: is missing",
        "rows[2]: answer: must be a whole number, not 'x'",
    ]


def test_rows_in_memory_are_checked_too() -> None:
    with pytest.raises(InputError) as caught:
        Tasks.from_rows([task(), task(when=object()), 5])  # type: ignore[list-item]
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["rows[1]", "rows[2]"]


def test_many_problems_are_counted() -> None:
    told = problems_of(Tasks.from_rows([{}] * 500))
    assert len(told) == 201
    assert told[-1] == "and 300 more"


def test_no_rows_and_no_file_are_problems(tmp_path: Path) -> None:
    assert problems_of(Tasks.from_rows([])) == ["rows: holds no task rows"]
    with pytest.raises(InputError, match=r"nowhere\.jsonl: the task file cannot be read: No such file"):
        Tasks.from_path(tmp_path / "nowhere.jsonl")


def test_a_pipe_can_be_the_task_file() -> None:
    ends = os.pipe()
    os.write(ends[1], codec.dumps(task("a")) + b"\n")
    os.close(ends[1])
    with Tasks.from_path(f"/dev/fd/{ends[0]}") as tasks:
        plan = plan_rollouts(tasks, TARGET, expansion=Expansion(repeats=2, interleave=True))
        assert [key_of(row) for row in plan.rows()] == [(0, 0), (0, 1)]
    os.close(ends[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit must be at least 1, not 0"),
        ({"repeats": 0}, "num_repeats must be at least 1, not 0"),
        ({"responses_create_params": {"temperature": "hot"}}, "overrides cannot be laid over .*temperature"),
    ],
)
def test_an_expansion_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Expansion(**options)


def test_materialized_rows_pass_as_they_are() -> None:
    row = {"task_id": {"taskset": "t", "task_id": "7"}, "task_input": {"answer": 4}}
    (planned,) = plan_of([row]).rows()
    assert {key: planned[key] for key in row} == row
    assert "responses_create_params" not in planned


def test_problems_of_materialized_rows() -> None:
    class Needs(BaseModel):
        answer: int

    rows = [
        {"task_id": {"taskset": ""}, "task_input": {}},
        {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": 1},
    ]
    assert problems_of(Tasks.from_rows(rows), check_task=fields_of(Needs)) == [
        "rows[0]: task_id.taskset: must have at least 1 character",
        "rows[0]: task_id.task_id: is missing",
        "rows[0]: task_input.answer: is missing",
        "rows[1]: task_input: must be an object, not a JSON int",
    ]
    (told,) = problems_of(Tasks.from_rows([{**rows[1], "task_input": {}}]), expansion=Expansion(add_seed=True))
    assert "takes neither overrides nor seeds" in told


def run_of(rows: list[dict[str, Any]], settings: dict[str, Any], **expansion: Any) -> str:
    return plan_rollouts(Tasks.from_rows(rows), TARGET, settings=settings, expansion=Expansion(**expansion)).run


def test_the_fingerprint_follows_what_results_depend_on() -> None:
    rows = tasks(2)
    runs = {
        run_of(rows, {}),
        run_of(rows, {"agent": {"max_steps": 8}}),
        run_of(rows[:1], {}),
        run_of(rows[::-1], {}),
        run_of(rows, {}, repeats=2),
        run_of(rows, {}, add_seed=True),
        run_of(rows, {}, responses_create_params={"temperature": 0}),
    }
    assert len(runs) == 7


def test_the_fingerprint_ignores_order_of_keys_spacing_and_dispatch(tmp_path: Path) -> None:
    rows = tasks(2)
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n\n".join(json.dumps(dict(reversed(row.items()))) for row in rows))
    with Tasks.from_path(path) as spaced:
        plan = plan_rollouts(spaced, TARGET, settings={"b": 1, "a": {"d": 1, "c": 2}})
    assert plan.run == run_of(rows, {"a": {"c": 2, "d": 1}, "b": 1}, interleave=True, limit=2)


def test_differences_name_each_setting() -> None:
    before = {"agent": {"max_steps": 8, "url": "http://a"}, "gone": [1]}
    now = {"agent": {"max_steps": 4, "url": "http://a"}, "new": "n" * 100}
    assert list(differences(before, now)) == [
        "agent.max_steps: 8 on disk, 4 asked for",
        "gone: [1] on disk, unset asked for",
        f'new: unset on disk, "{"n" * 78}… asked for',
    ]
    assert fingerprint(before) != fingerprint(now)


def test_rows_of_a_file_do_not_stay_in_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.jsonl", *(task("x" * 100_000, number=number) for number in range(300)))
    tracemalloc.start()
    with Tasks.from_path(path) as tasks:
        plan = plan_rollouts(tasks, TARGET, expansion=Expansion(repeats=2, interleave=True))
        assert sum(1 for _ in plan.rows()) == 600
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 5
