from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.profile import profile, profile_files
from gymkit.errors import StoreError
from gymkit.wire import codec

RECORDS = Path(__file__).parents[1] / "data" / "nemo_gym"
PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON", "")
ORACLE = """
import json, sys, warnings
warnings.simplefilter("ignore")
from nemo_gym.reward_profile import RewardProfiler, select_measured
profiler, found = RewardProfiler(), []
for planned, results in json.load(sys.stdin):
    results.sort(key=lambda row: (row["_ng_task_index"], row["_ng_rollout_index"]))
    rows, measured, _, _ = select_measured(planned, results)
    parts = profiler.profile_from_data(rows, measured, allow_partial_rollouts=True)
    found.append([profiler.prepare_for_serialization(part) for part in parts])
json.dump(found, sys.stdout)
"""


def planned(task: int, rollout: int = 0, agent: str = "remote_agent", **fields: Any) -> dict[str, Any]:
    stamps = {"_ng_task_index": task, "_ng_rollout_index": rollout, "agent_ref": {"name": agent}}
    return {"responses_create_params": {"input": f"task {task}"}, **stamps, **fields}


def result(task: int, rollout: int = 0, reward: float = 1.0, **fields: Any) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, "reward": reward, **fields}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the mixed records without what a profile writes."""
    for name in ("rollouts.jsonl", "rollouts_materialized_inputs.jsonl"):
        shutil.copy(RECORDS / "mixed" / name, tmp_path / name)
    return tmp_path


def files(folder: Path) -> tuple[Path, Path]:
    return folder / "rollouts_materialized_inputs.jsonl", folder / "rollouts.jsonl"


@pytest.mark.parametrize("name", ["success", "mixed", "graded"])
def test_the_three_files_are_byte_for_byte_those_of_nemo_gym(name: str, tmp_path: Path) -> None:
    run = tmp_path / name
    shutil.copytree(RECORDS / name, run)
    stems = ("reward_profiling.jsonl", "agent_metrics.json", "repeat_level_metrics.json")
    for stem in stems:
        (run / f"rollouts_{stem}").unlink()
    written = profile_files(*files(run), partial=name != "success")
    assert [path.name for path in written] == [f"rollouts_{stem}" for stem in stems]
    for path in written:
        assert path.read_bytes() == (RECORDS / name / path.name).read_bytes()


def test_a_missing_rollout_is_an_error_that_names_it_and_the_way_out(folder: Path) -> None:
    with pytest.raises(
        StoreError, match=r"lack 9 rollouts \(task:rollout 3:0, 3:1, .*\) of 30 planned; resume"
    ) as error:
        profile_files(*files(folder))
    assert "++allow_partial_rollouts=true" in str(error.value)
    assert not (folder / "rollouts_agent_metrics.json").exists(), "nothing is written"


def test_a_masked_rollout_is_not_missing() -> None:
    found = profile([planned(0), planned(1)], [result(0), result(1, mask_sample=True)])
    [group], [agent] = found.groups, found.agents
    assert (group["expected_num_rollouts"], agent["coverage/masked_rollouts"]) == (1, 1)


def test_a_partial_task_says_how_much_of_it_is_there() -> None:
    found = profile([planned(0, index) for index in range(4)], [result(0, 0), result(0, 2)], partial=True)
    [group] = found.groups
    assert group["missing_num_rollouts"] == 2
    assert group["reward_profile_completion_pct"] == 50.0


def test_an_agent_whose_every_rollout_is_masked_keeps_its_coverage() -> None:
    found = profile([planned(0)], [result(0, mask_sample=True)])
    assert found.groups == found.repeats == []
    [agent] = found.agents
    assert agent["agent_ref"] == {"name": "remote_agent"}
    assert "mean/reward" not in agent


@pytest.mark.parametrize(
    ("rows", "results", "message"),
    [
        ([planned(0)], [result(0), result(5)], r"hold 1 rollout \(task:rollout 5:0\), never planned"),
        ([planned(0)], [result(0), result(0)], r"the rollouts hold 1 rollout \(task:rollout 0:0\) more than once"),
        ([planned(0), planned(0)], [result(0)], r"the materialized inputs hold 1 rollout .* more than once"),
    ],
)
def test_rows_that_do_not_belong_together_are_refused(rows: Any, results: Any, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        profile(rows, results, partial=True)


def test_an_error_about_many_rollouts_names_ten() -> None:
    with pytest.raises(StoreError, match=r"lack 50 rollouts .*, 0:9, …\) of 50 planned"):
        profile([planned(0, index) for index in range(50)], [])


def test_a_broken_line_is_named_by_file_and_number(folder: Path) -> None:
    materialized, rollouts = files(folder)
    rollouts.write_bytes(rollouts.read_bytes() + b'{"torn": ')
    with pytest.raises(StoreError, match=r"rollouts\.jsonl:\d+: the line is not JSON"):
        profile_files(materialized, rollouts, partial=True)


def test_a_blank_line_loses_nothing(folder: Path) -> None:
    materialized, rollouts = files(folder)
    rollouts.write_bytes(rollouts.read_bytes() + b"\n")
    assert profile_files(materialized, rollouts, partial=True)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"rollouts_materialized_inputs\.jsonl cannot be read: No such file"):
        profile_files(*files(tmp_path))


def test_a_sample_is_the_input_row_without_what_gymkit_added_to_it() -> None:
    [group] = profile([planned(0, gymkit={"run": "3f9a1c20be77"}, level=3)], [result(0)]).groups
    assert group["sample"] == {
        "responses_create_params": {"input": "task 0"},
        "agent_ref": {"name": "remote_agent"},
        "level": 3,
    }


def test_one_task_for_two_agents_makes_two_groups() -> None:
    rows = [planned(0, 0, "b"), planned(0, 1, "a"), planned(1, 0, "a")]
    found = profile(rows, [result(0, 0, 0.0), result(0, 1), result(1, 0)])
    labels = [(group["_ng_task_index"], group["agent_ref"]["name"], group["mean/reward"]) for group in found.groups]
    assert labels == [(0, "a", 1.0), (0, "b", 0.0), (1, "a", 1.0)]


def test_two_servers_in_front_of_one_agent_go_by_their_own_names() -> None:
    rows = [planned(0, index, _ng_environment_server=server) for index, server in enumerate(("relay", "turns"))]
    found = profile(rows, [result(0, 0), result(0, 1, 0.0)])
    assert [agent["agent_ref"]["name"] for agent in found.agents] == ["relay", "turns"]


def test_a_label_that_another_server_bears_gives_way_to_the_servers_own() -> None:
    rows = [planned(0, 0, "x", _ng_environment_server="y"), planned(0, 1, "y", _ng_environment_server="z")]
    rows += [planned(0, 2, "x", _ng_environment_server="w")]
    found = profile(rows, [result(0, index) for index in range(3)])
    assert [agent["agent_ref"]["name"] for agent in found.agents] == ["w", "y", "z"]


def random_run(rng: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A plan over tasks, repeats, agents and servers, and results for most of it."""
    agents, servers = rng.choice([["a"], ["b", "a"]]), rng.choice([[None], ["relay"], ["relay", "turns", "a"]])
    rows = []
    for task in range(rng.choice([1, 4, 12])):
        for index in range(rng.choice([1, 2, 5])):
            server = rng.choice(servers)
            stamp = {"_ng_environment_server": server} if server else {}
            rows.append(planned(task, index, rng.choice(agents), **stamp))
    done = [row for row in rows if rng.random() < 0.8]
    results = [
        result(
            row["_ng_task_index"],
            row["_ng_rollout_index"],
            rng.random(),
            mask_sample=rng.random() < 0.1,
            odd=rng.random(),
        )
        for row in done
    ]
    rng.shuffle(results)
    return rows, results


@pytest.mark.anchor
@pytest.mark.skipif(not PYTHON, reason="GYMKIT_ANCHOR_PYTHON names no Python with nemo-gym")
def test_random_runs_are_profiled_as_nemo_gym_does() -> None:
    rng = random.Random(20260702)
    runs = [random_run(rng) for _ in range(40)]
    asked = subprocess.run(
        [PYTHON, "-c", ORACLE], input=codec.dumps(runs), capture_output=True, timeout=120, check=True
    )
    for (rows, results), (groups, agents, repeats) in zip(runs, json.loads(asked.stdout), strict=True):
        found = profile(rows, results, partial=True)
        assert codec.loads(codec.dumps(found.groups)) == groups
        assert codec.loads(codec.dumps(found.repeats)) == repeats
        own = [{name: entry[name] for name in entry if not name.startswith("coverage/")} for entry in found.agents]
        assert [entry for entry in own if len(entry) > 1] == agents
