from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gymkit.errors import WireError
from gymkit.servers.aggregate import aggregate
from gymkit.wire import codec

RECORDS = Path(__file__).parents[1] / "data" / "nemo_gym"
SETS = ["success", "mixed", "graded"]
COVERAGE = ["measured_rollouts", "masked_rollouts", "measured_tasks", "fully_masked_tasks"]
PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON", "")
ORACLE = """
import json, sys, warnings
warnings.simplefilter("ignore")
from nemo_gym.reward_profile import compute_aggregate_metrics
replies = [compute_aggregate_metrics(rows).model_dump() for rows in json.load(sys.stdin)]
json.dump(replies, sys.stdout)
"""


def results(name: str) -> list[dict[str, Any]]:
    return [codec.loads(line) for line in (RECORDS / name / "rollouts.jsonl").read_bytes().splitlines()]


def row(task: int, rollout: int = 0, **fields: Any) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, **fields}


@pytest.mark.parametrize("name", SETS)
def test_the_reply_equals_what_nemo_gym_stored_for_the_same_rows(name: str) -> None:
    [stored] = codec.loads((RECORDS / name / "rollouts_aggregate_metrics.json").read_bytes())
    reply = codec.loads(codec.dumps(aggregate(results(name))))
    for part in ("agent_metrics", "key_metrics", "group_level_metrics", "repeat_level_metrics"):
        assert reply[part] == stored[part]
        assert list(reply[part]) == list(stored[part])
    assert reply["perf_summary"] == stored.get("perf_summary")


def test_the_order_of_rows_does_not_matter() -> None:
    rows = results("graded")
    assert aggregate(rows[::-1]) == aggregate(rows)


def test_a_missing_reward_is_missing_and_not_zero() -> None:
    metrics = aggregate([row(0, reward=1.0), row(1, reward=None), row(2)])["agent_metrics"]
    assert (metrics["mean/reward"], metrics["min/reward"]) == (1.0, 1.0)


def test_a_masked_reward_is_in_no_statistic_and_the_coverage_says_so() -> None:
    reply = aggregate([row(0, reward=1.0, mask_sample=False), row(1, reward=0.0, mask_sample=True)])
    assert reply["agent_metrics"]["mean/reward"] == 1.0
    assert reply["key_metrics"] == {
        "mean/reward": 1.0,
        "coverage/measured_rollouts": 1,
        "coverage/masked_rollouts": 1,
        "coverage/measured_tasks": 1,
        "coverage/fully_masked_tasks": 1,
    }
    assert [group["_ng_task_index"] for group in reply["group_level_metrics"]] == [0]
    assert not any("mask_sample" in name for name in reply["agent_metrics"]), "the flag is no measurement"


def test_when_all_is_masked_nothing_is_averaged() -> None:
    reply = aggregate([row(0, reward=1.0, mask_sample=True)])
    assert set(reply["agent_metrics"]) == {f"coverage/{name}" for name in COVERAGE}
    assert reply["group_level_metrics"] == []


def test_no_rows_make_an_empty_reply() -> None:
    assert aggregate([]) == {
        "group_level_metrics": [],
        "agent_metrics": {},
        "key_metrics": {},
        "perf_summary": None,
        "repeat_level_metrics": [],
    }


def test_a_rollout_that_comes_twice_is_refused_by_name() -> None:
    with pytest.raises(WireError, match=r"1 rollouts come more than once \(task:rollout 3:1\)"):
        aggregate([row(3, 1, reward=1.0), row(3, 1, reward=0.0)])


def test_numbers_are_top_level_ones_and_usage_and_nothing_private() -> None:
    usage = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 3}}
    extras = {"solved": True, "note": "3", "_secret": 5, "reward_components": {"a": 1.0}, "input_tokens": 1}
    [group] = aggregate([row(0, reward=0.5, response={"usage": usage}, **extras)])["group_level_metrics"]
    means = {name: value for name, value in group.items() if name.startswith("mean/")}
    assert means == {"mean/reward": 0.5, "mean/solved": 1.0, "mean/input_tokens": 9.0}


@pytest.mark.parametrize("response", [None, "text", {}, {"usage": None}, {"usage": 3}])
def test_a_row_without_usage_has_no_token_metrics(response: Any) -> None:
    assert aggregate([row(0, reward=1.0, response=response)])["key_metrics"] == {"mean/reward": 1.0}


def test_two_thousand_rows_take_well_under_half_a_second_of_cpu() -> None:
    rows = [row(n, reward=n % 2 / 1, response={"usage": {"input_tokens": n, "output_tokens": n}}) for n in range(2000)]
    aggregate(rows[:10])
    start = time.process_time()
    aggregate(rows)
    assert time.process_time() - start < 0.4


def random_rows(rng: random.Random) -> Iterator[dict[str, Any]]:
    """Rows with gaps, masks, flags, odd names, performance records and rewards whole, broken and absent."""
    repeats, gaps, masks = rng.choice([1, 2, 3, 9, 17]), rng.choice([0, 0.1, 0.5]), rng.choice([0, 0.1, 0.6])
    whole = rng.random() < 0.3
    for task, rollout in ((task, rollout) for task in range(rng.choice([1, 2, 7, 40])) for rollout in range(repeats)):
        if rng.random() < gaps / 3:
            continue
        reward = rng.choice([0, 1]) if whole else rng.choice([0, 1.0, True, None, rng.random()])
        made = row(2 * task + 1, rollout, reward=reward, mask_sample=rng.random() < masks)
        extras = {"zeta": rng.gauss(0, 1e3), "alpha": rng.random() < 0.5, "mean/x": rng.random(), "p25": 1, "_no": 2}
        if not whole:
            made |= {name: value for name, value in extras.items() if rng.random() > gaps}
        if rng.random() > gaps:
            made["response"] = {"usage": {"input_tokens": rng.randrange(10**5), "total_tokens": rng.randrange(10**5)}}
        if rng.random() < 0.3:
            names = ("prompt_tokens", "completion_tokens", "num_turns", "total_latency_ms", "reasoning_tokens")
            made["ng_perf"] = {name: rng.randrange(10**4) for name in names if rng.random() < 0.9}
        yield made


@pytest.mark.anchor
@pytest.mark.skipif(not PYTHON, reason="GYMKIT_ANCHOR_PYTHON names no Python with nemo-gym")
def test_random_rows_give_nemo_gyms_own_numbers() -> None:
    rng = random.Random(20260701)
    cases = [list(random_rows(rng)) for _ in range(30)]
    for rows in cases:
        rng.shuffle(rows)
    asked = subprocess.run(
        [PYTHON, "-c", ORACLE], input=codec.dumps(cases), capture_output=True, timeout=120, check=True
    )
    for rows, expected in zip(cases, codec.loads(asked.stdout), strict=True):
        assert codec.loads(codec.dumps(aggregate(rows))) == expected
