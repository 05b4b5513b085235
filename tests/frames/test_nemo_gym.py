"""The files that NeMo Gym 0.7.0 wrote, as they stand."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gymkit.frames import failures, masks, rewards, tasks, tool_calls, trajectories
from gymkit.frames.records import Records
from gymkit.frames.rows import Stamped

HERE = Path(__file__).parent.parent / "data" / "nemo_gym"
RUNS = sorted(path.parent.name for path in HERE.glob("*/rollouts.jsonl"))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


@pytest.fixture(params=RUNS)
def records(request: pytest.FixtureRequest) -> Records:
    return Records(HERE / request.param / "rollouts.jsonl")


def test_there_are_runs_to_read() -> None:
    assert RUNS


def test_every_planned_rollout_has_a_reward_row(records: Records) -> None:
    table = rewards.frame(records)
    planned = {(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows(records.inputs_path)}
    assert set(zip(table.task_index, table.rollout_index, strict=True)) == planned
    assert records.problems == []


def test_the_rewards_are_those_of_the_file(records: Records) -> None:
    told = {(row["_ng_task_index"], row["_ng_rollout_index"]): row for row in rows(records.path)}
    table = rewards.frame(records).set_index(["task_index", "rollout_index"])
    for key, row in table.iterrows():
        if row.status == "scored":
            assert row.reward == told[key]["reward"]
            usage = told[key]["response"]["usage"]
            assert row.input_tokens is pd.NA if usage is None else row.input_tokens == usage["input_tokens"]
        assert (row.status in ("scored", "masked")) == (key in told)
    assert len(masks.frame(records)) == len(told)


def test_the_mean_is_that_of_the_unmasked_rows(records: Records) -> None:
    unmasked = [row["reward"] for row in rows(records.path) if not row["mask_sample"]]
    assert rewards.frame(records).reward.mean() == pytest.approx(sum(unmasked) / len(unmasked))


def test_each_item_has_a_row(records: Records) -> None:
    items = [
        len(row["responses_create_params"]["input"]) + len(row["response"]["output"]) for row in rows(records.path)
    ]
    table = trajectories.frame(records)
    assert len(table) == sum(items)
    assert table.text.isna().eq(table.kind == "function_call").all()
    calls = tool_calls.frame(records)
    assert len(calls) == (table.kind == "function_call").sum()
    assert calls.output.notna().mean() > 0.5


def test_each_failed_attempt_has_a_row(records: Records) -> None:
    table = failures.frame(records)
    told = rows(records.failures_path)
    assert len(table) == len(told)
    assert table.message.notna().all()
    assert table.terminal.sum() == sum(bool(row.get("_ng_failure_terminal")) for row in told)


def test_the_tasks_are_those_of_the_plan(records: Records) -> None:
    table = tasks.frame(records.tasks())
    assert table.task_index.tolist() == sorted({key[0] for key, _, _ in records.inputs(Stamped)})
    assert table.prompt.notna().all()
    assert (table.tools == 2).all()
    assert str(table.expected_count.dtype) == "Int64"


def test_records_are_whole(records: Records) -> None:
    for row in rows(records.path):
        assert records.record(row["_ng_task_index"], row["_ng_rollout_index"]) == row
