"""``eval compare``'s numbers against NeMo Gym's, on recorded and on random runs."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.comparison_report import Report
from gymkit.collect.metrics_file import MetricsFile
from gymkit.errors import ConfigError, StoreError
from gymkit.sdk.reports import report
from gymkit.servers.aggregate import aggregate
from gymkit.wire import codec
from tests.data.nemo_gym.make_compare import HERE, PAIRS, theirs, told

PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON", "")


def ours(baseline: Path, candidate: Path) -> dict[str, Any]:
    """The JSON report as it is read back."""
    content: dict[str, Any] = json.loads(codec.dumps_indented(report(baseline, candidate).content()))
    return content


@pytest.mark.parametrize(("baseline", "candidate"), PAIRS)
def test_the_numbers_are_those_of_nemo_gym(baseline: str, candidate: str) -> None:
    expected = json.loads((HERE / "compare" / f"{baseline}_{candidate}.json").read_bytes())
    assert told(ours(HERE / baseline / "rollouts.jsonl", HERE / candidate / "rollouts.jsonl")) == expected


def metrics(folder: Path, name: str, rows: list[dict[str, Any]], agent: str = "agent", **entry: Any) -> Path:
    """A metrics file; returns the main file it stands beside, which is not there."""
    content = [{"agent_ref": {"name": agent}, **aggregate(rows), **entry}]
    (folder / f"{name}_aggregate_metrics.json").write_bytes(codec.dumps(content))
    return folder / f"{name}.jsonl"


def run(chance: random.Random, values: list[float]) -> list[dict[str, Any]]:
    """Rows of up to 25 tasks × up to 3, with gaps, masks and another number."""
    repeats = chance.randint(1, 3)
    return [
        {"_ng_task_index": task, "_ng_rollout_index": rollout, "reward": chance.choice(values)}
        | ({"extra": chance.random()} if chance.random() < 0.5 else {})
        | ({"mask_sample": True} if chance.random() < 0.05 else {})
        for task in range(chance.randint(1, 25))
        for rollout in range(repeats)
        if chance.random() < 0.9
    ] or [{"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0}]


@pytest.mark.anchor
@pytest.mark.skipif(not PYTHON, reason="GYMKIT_ANCHOR_PYTHON names no Python with nemo-gym")
def test_random_runs_compare_as_at_nemo_gym(tmp_path: Path) -> None:
    chance = random.Random(5)
    pairs = []
    for number in range(60):
        values = chance.choice([[0.0, 1.0], [0.0, 0.25, 1.0], [1.0]])
        old, new = (metrics(tmp_path, f"{side}{number}", run(chance, values)) for side in "ab")
        pairs.append((old, new))
    for (old, new), expected in zip(pairs, theirs(Path(PYTHON), pairs), strict=True):
        assert told(ours(old, new)) == told(expected)


ROWS = [{"_ng_task_index": task, "_ng_rollout_index": 0, "reward": float(task % 2)} for task in range(4)]


def test_flips_of_passed_and_failed_tasks(tmp_path: Path) -> None:
    old = metrics(tmp_path, "a", ROWS)
    new = metrics(tmp_path, "b", [row | {"reward": 1.0} for row in ROWS])
    flips = ours(old, new)["comparisons"][0]["flips"][0]
    assert (flips["mode"], flips["fail_to_pass_count"], flips["pass_to_fail_count"], flips["net"]) == (
        "binary",
        2,
        0,
        2,
    )
    assert [flip["task_index"] for flip in flips["flips"]] == [0, 2]
    assert flips["flips"][0]["candidate_rewards"] == [1.0]


def test_an_older_file_gets_its_repeats_from_its_rollouts(tmp_path: Path) -> None:
    twice = [row | {"_ng_rollout_index": rollout} for row in ROWS for rollout in (0, 1)]
    whole = metrics(tmp_path, "whole", twice)
    content = codec.loads((tmp_path / "whole_aggregate_metrics.json").read_bytes())
    del content[0]["repeat_level_metrics"]
    (tmp_path / "old_aggregate_metrics.json").write_bytes(codec.dumps(content))
    assert MetricsFile.read(tmp_path / "old.jsonl").agent("agent") == MetricsFile.read(whole).agent("agent")


def test_the_comparison_by_task_stands_beside(tmp_path: Path) -> None:
    found = report(metrics(tmp_path, "a", ROWS), metrics(tmp_path, "b", [row | {"reward": 1.0} for row in ROWS]))
    assert "4 paired tasks: 2 won, 0 lost, 2 tied" in found.paired["agent"]
    assert found.paired["agent"].splitlines()[0] in found.markdown()


def test_a_run_without_rewards_has_no_comparison_by_task(tmp_path: Path) -> None:
    rows = [{"_ng_task_index": 0, "_ng_rollout_index": 0, "seconds": 2.0}]
    found = report(metrics(tmp_path, "a", rows), metrics(tmp_path, "b", rows))
    assert dict(found.paired) == {}
    assert found.comparisons[0].flips[0].mode == "unavailable"
    assert "None to be had" in found.markdown()


def test_names_cannot_break_the_tables(tmp_path: Path) -> None:
    path = metrics(tmp_path, "a", ROWS, agent="a|b")
    lines = report(path, path).markdown().splitlines()
    assert "| Agent | a\\|b | a\\|b |" in lines


def test_which_files_are_written(tmp_path: Path) -> None:
    path = metrics(tmp_path, "a", ROWS)
    found: Report = report(path, path)
    assert [each.name for each in found.write(tmp_path / "new", "json")] == ["compare_report.json"]
    assert [each.name for each in found.write(tmp_path / "new")] == ["compare_report.md", "compare_report.json"]
    with pytest.raises(StoreError, match="cannot be made"):
        found.write(path.with_name("a_aggregate_metrics.json"))


def test_agents_are_paired_by_name_or_as_told(tmp_path: Path) -> None:
    one, other = metrics(tmp_path, "a", ROWS, agent="one"), metrics(tmp_path, "b", ROWS, agent="other")
    with pytest.raises(ConfigError, match=r"no agent is in both runs: one in .*, other in"):
        report(one, other)
    found = report(one, other, baseline_agent="one", candidate_agent="other")
    assert found.comparisons[0].candidate_agents == ["other"]
    assert report(one, other, baseline_agent="one").comparisons[0].candidate_agents == ["other"]
    with pytest.raises(ConfigError, match="no agent on; did you mean 'one'"):
        report(one, other, agent="on")


def test_an_agent_of_one_run_only_is_named(tmp_path: Path) -> None:
    one = metrics(tmp_path, "a", ROWS)
    content = codec.loads((tmp_path / "a_aggregate_metrics.json").read_bytes())
    more = [*content, content[0] | {"agent_ref": {"name": "second"}}]
    (tmp_path / "b_aggregate_metrics.json").write_bytes(codec.dumps(more))
    found = report(one, tmp_path / "b.jsonl")
    assert found.content()["skipped_agents"] == {"candidate[0]": ["second"]}
    assert "Only the candidate[0] has second" in found.markdown()
    with pytest.raises(ConfigError, match="say which is the candidate's"):
        report(one, tmp_path / "b.jsonl", baseline_agent="agent")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "is not there; gymkit eval aggregate -i"),
        (b"[", "is not JSON"),
        (b"{}", "is no metrics file"),
        (b"[]", "is no metrics file"),
        (b"[{}]", "without agent_ref.name"),
        (b'[{"agent_ref":{"name":"a"}},{"agent_ref":{"name":"a"}}]', "two objects for the agent a"),
    ],
)
def test_files_that_hold_no_metrics(tmp_path: Path, content: bytes | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "a_aggregate_metrics.json").write_bytes(content)
    with pytest.raises(StoreError, match=reason):
        MetricsFile.read(tmp_path / "a.jsonl")


def test_nothing_in_common_is_an_error(tmp_path: Path) -> None:
    one = metrics(tmp_path, "a", ROWS, agent_metrics={"mean/x": 1.0}, key_metrics={})
    other = metrics(tmp_path, "b", ROWS, agent_metrics={"mean/y": 1.0}, key_metrics={})
    with pytest.raises(ConfigError, match="no metric in common: mean/x there, mean/y here"):
        report(one, other)
