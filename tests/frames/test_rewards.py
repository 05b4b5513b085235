import tracemalloc
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gymkit.frames import failures, masks, rewards
from gymkit.frames.records import Records
from tests.frames.samples import (
    RUN,
    STARTED,
    Row,
    call,
    facts_of,
    message,
    nemo,
    nemo_failure,
    our_failure,
    ours,
    output,
    planned,
    write_run,
)


def frame(folder: Path, results: Any = (), failures: Any = None, plan: Any = None) -> pd.DataFrame:
    return rewards.frame(Records(write_run(folder, results, failures, plan)))


def only(folder: Path, row: Row) -> Any:
    (found,) = frame(folder, [row]).itertuples()
    return found


def test_scored_masked_failed_and_missing_stay_apart(tmp_path: Path) -> None:
    plan = [planned(task, rollout) for task in range(3) for rollout in range(2)]
    results = [
        ours(2, 0, reward=0.0),
        ours(0, 0, attempt=1),
        ours(0, 1, reward=0.0, mask_sample=True, failure_kind="judge_failed"),
        ours(1, 0, reward=None),
    ]
    failed = [our_failure(0, 0), our_failure(1, 1), our_failure(1, 1, attempt=1, failure_kind="timeout")]
    table = frame(tmp_path, results, failed, plan)
    assert table.status.tolist() == ["scored", "masked", "missing", "failed", "scored", "missing"]
    assert table.reward.isna().tolist() == [False, True, True, True, False, True]
    assert table.reward.mean() == 0.5
    assert table.attempt.fillna(-1).tolist() == [1, 0, 0, 1, 0, -1]
    assert table.failure_kind.astype(object).fillna("").tolist() == ["", "judge_failed", "no_reward", "timeout", "", ""]
    assert table.mask_sample.tolist() == [False, True, pd.NA, pd.NA, False, pd.NA]


@pytest.mark.parametrize("reward", [None, "1.0", True, [1.0], {}])
def test_a_reward_that_is_no_number_is_no_zero(tmp_path: Path, reward: Any) -> None:
    row = only(tmp_path, nemo(0, reward=reward))
    assert (row.status, row.failure_kind) == ("missing", "no_reward")
    assert row.reward is pd.NA


def test_a_row_without_the_reward_key_is_no_zero(tmp_path: Path) -> None:
    row = nemo(0)
    del row["reward"]
    assert only(tmp_path, row).status == "missing"


def test_a_failed_rollout_counts_nothing_in_its_placeholder(tmp_path: Path) -> None:
    (row,) = frame(tmp_path, [], [our_failure(4)]).itertuples()
    assert (row.status, row.steps, row.seconds, row.run) == ("failed", 0, 0.5, RUN)
    assert all(value is pd.NA for value in (row.reward, row.input_tokens, row.mask_sample))


def test_of_a_failed_rollout_all_counts_of_calls_are_known_or_none(tmp_path: Path) -> None:
    calls = [{"item": 1, "step": 1, "error": None}, {"item": 3, "step": 2, "error": "failed"}]
    knowing = our_failure(0, gymkit={"run": RUN, "steps": 2, "calls": calls})
    unknowing = our_failure(1, gymkit={"run": RUN})
    found = frame(tmp_path, [], [knowing, unknowing, our_failure(2)])
    counts = found[["tool_calls", "undeclared_calls", "malformed_calls", "failed_calls"]]
    assert counts.iloc[0].tolist() == [2, 0, 0, 1]
    assert counts.iloc[1].isna().all()
    assert counts.iloc[2].tolist() == [0, 0, 0, 0]


def test_a_row_of_ours_in_full(tmp_path: Path) -> None:
    row = only(tmp_path, ours(3, 1))
    assert (row.task_index, row.rollout_index, row.attempt, row.task_id) == (3, 1, 0, "3")
    assert (row.agent, row.environment) == ("remote_agent", "remote_agent_environment_server")
    assert (row.steps, row.tool_calls, row.termination_reason) == (4, 3, "message")
    assert (row.undeclared_calls, row.malformed_calls, row.failed_calls) == (0, 0, 0)
    assert (row.input_tokens, row.output_tokens, row.total_tokens) == (160, 20, 180)
    assert (row.seconds, row.run) == (1.25, RUN)
    assert row.started_at == pd.Timestamp(STARTED, unit="s", tz="UTC")


def test_a_row_of_nemo_gym_says_nothing_that_nobody_measured(tmp_path: Path) -> None:
    row = only(tmp_path, nemo(0))
    assert (row.status, row.reward, row.tool_calls, row.total_tokens) == ("scored", 1.0, 3, 180)
    unknown = (row.steps, row.undeclared_calls, row.malformed_calls, row.failed_calls, row.seconds, row.run)
    assert all(value is pd.NA for value in unknown)
    assert row.started_at is pd.NaT


def test_calls_are_counted_by_what_was_wrong_with_them(tmp_path: Path) -> None:
    items = [item for number in range(4) for item in (call(f"c{number}"), output(f"c{number}"))]
    facts = facts_of(items)
    for entry, error in zip(facts["calls"], ["undeclared", "malformed", "failed", "failed"], strict=True):
        entry["error"] = error
    row = only(tmp_path, ours(0, items=[*items, message("done")], gymkit=facts))
    assert (row.tool_calls, row.undeclared_calls, row.malformed_calls, row.failed_calls) == (4, 1, 1, 2)


def test_reward_components_have_a_column_each_and_only_for_scored_rollouts(tmp_path: Path) -> None:
    results = [
        nemo(0, reward_components={"style": 0.5, "exact": 1}),
        nemo(1, reward_components={"exact": 0, "odd": "text"}),
        nemo(2, reward_components={"exact": 1}, mask_sample=True),
        nemo(3, reward_components=None),
    ]
    table = frame(tmp_path, results)
    extra = table.columns[len(rewards.COLUMNS) :].tolist()
    assert extra == ["reward.exact", "reward.odd", "reward.style"]
    assert table["reward.exact"].tolist() == [1.0, 0.0, pd.NA, pd.NA]
    assert table["reward.style"].tolist() == [0.5, pd.NA, pd.NA, pd.NA]
    assert table["reward.odd"].isna().all()
    assert str(table["reward.odd"].dtype) == "Float64"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "7"),
        ({"task_id": "alpha"}, "alpha"),
        ({"problem_id": 12, "instance_id": "late"}, "12"),
        ({"task_id": {"taskset": "s", "task_id": "beta"}}, "beta"),
        ({"_ng_task_id": {"taskset": "s", "task_id": "gamma"}}, "gamma"),
        ({"_ng_task_id": None, "task_id": None, "instance_id": "delta"}, "delta"),
    ],
)
def test_the_name_of_a_task(tmp_path: Path, fields: Row, name: str) -> None:
    assert frame(tmp_path, plan=[planned(7, **fields)]).task_id.tolist() == [name]
    assert frame(tmp_path, [nemo(7, **fields)], plan=[]).task_id.tolist() == [name]


def test_the_plan_names_what_a_result_does_not(tmp_path: Path) -> None:
    result = ours(0)
    for key in ("agent_ref", "_ng_environment_server", "gymkit"):
        del result[key]
    plan = [planned(0, task_id="t", reward=1.0, mask_sample=True, response={"output": [call("c")]})]
    (row,) = frame(tmp_path, [result], plan=plan).itertuples()
    assert (row.task_id, row.agent, row.environment, row.run) == (
        "t",
        "remote_agent",
        "remote_agent_environment_server",
        RUN,
    )


def test_a_stale_result_in_the_plan_is_not_a_result(tmp_path: Path) -> None:
    plan = [planned(0, reward=1.0, mask_sample=True, response={"output": [call("c")]})]
    (row,) = frame(tmp_path, plan=plan).itertuples()
    assert row.status == "missing"
    assert row.reward is pd.NA and row.tool_calls is pd.NA


def test_of_a_repeated_rollout_the_last_row_counts_in_every_frame(tmp_path: Path) -> None:
    records = Records(write_run(tmp_path, [nemo(1), nemo(0, reward=0.25), nemo(1, reward=0.5), nemo(0, reward=0.75)]))
    assert rewards.frame(records).reward.tolist() == [0.75, 0.5]
    assert masks.frame(records).reward.tolist() == [0.75, 0.5]


def test_results_that_nobody_planned_are_kept_and_reported(tmp_path: Path) -> None:
    records = Records(write_run(tmp_path, [nemo(0), nemo(8), nemo(9)], plan=[planned(0), planned(1)]))
    assert rewards.frame(records).status.tolist() == ["scored", "missing", "scored", "scored"]
    (problem,) = records.problems
    assert (problem.line, "2 lines from here on" in problem.reason) == (2, True)


def test_an_empty_run_has_the_same_columns(tmp_path: Path) -> None:
    empty, full = frame(tmp_path), frame(tmp_path, [nemo(0)])
    assert len(empty) == 0
    assert empty.columns.equals(full.columns)
    assert empty.dtypes.astype(str).equals(full.dtypes.astype(str))


@pytest.mark.parametrize(
    "odd", [3, "text", [], {"output": "x", "usage": 7}, {"output": [1, {"type": "function_call"}]}]
)
def test_a_response_of_an_odd_shape_does_not_cost_the_reward(tmp_path: Path, odd: Any) -> None:
    row = only(tmp_path, nemo(0, response=odd, gymkit=odd, agent_ref=odd))
    assert (row.status, row.reward) == ("scored", 1.0)


def test_masks_and_rewards_hold_no_trajectories(tmp_path: Path) -> None:
    """Each row has 200 kB of text, 40 MB in all; reading them keeps a few rows at a time."""
    text = "x" * 200_000
    records = Records(write_run(tmp_path, (ours(task, items=[message(text)]) for task in range(200))))
    rewards.frame(records)
    tracemalloc.start()
    try:
        assert len(rewards.frame(records)) == len(masks.frame(records)) == 200
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_masks_say_why(tmp_path: Path) -> None:
    results = [
        nemo(1, mask_sample=True, reward=0.0, failure_kind="judge_failed", failure_reason="the judge\u2028was out"),
        nemo(0, mask_sample=None, reward=None),
    ]
    table = masks.frame(Records(write_run(tmp_path, results, [nemo_failure(2)])))
    assert table.task_index.tolist() == [0, 1]
    assert table.mask_sample.tolist() == [False, True]
    assert table.reward.tolist() == [pd.NA, 0.0]
    assert table.failure_kind.tolist()[1] == "judge_failed"
    assert table.failure_reason.tolist() == [pd.NA, "the judge\u2028was out"]


def test_failures_one_row_an_attempt(tmp_path: Path) -> None:
    collector = {
        "_ng_failure_class": "agent_run_error",
        "_ng_failure_message": "HTTP 500",
        "failure_kind": "http_status",
    }
    rows = [
        our_failure(1, attempt=1, _ng_failure_terminal=True, failure_kind="invalid_response"),
        our_failure(1),
        nemo_failure(0),
        {"_ng_task_index": 3, "_ng_rollout_index": 0, **collector},
        nemo_failure(4, _ng_failure_class="judge_failed", error=None, failure_reason="judge down"),
    ]
    table = failures.frame(Records(write_run(tmp_path, [], rows)))
    assert list(zip(table.task_index, table.attempt, strict=True)) == [(0, 0), (1, 0), (1, 1), (3, 0), (4, 0)]
    assert table.terminal.tolist() == [False, False, True, False, False]
    assert table.message.tolist()[1:] == ["no connection", "no connection", "HTTP 500", "judge down"]
    assert table.failure_class.tolist()[3:] == ["agent_run_error", "judge_failed"]
    assert table.seconds.tolist() == [pd.NA, 0.5, 0.5, pd.NA, pd.NA]
    assert table.run.tolist()[1] == RUN
