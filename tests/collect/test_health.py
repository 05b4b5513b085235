"""The health of the evidence: each check fires on its own fault, and silence is not health."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import gymkit
from gymkit.collect.health import examine
from gymkit.collect.row_checks import check_row
from gymkit.errors import ConfigError
from gymkit.testing.agent import call
from gymkit.wire import codec

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    output = tmp_path_factory.mktemp("run") / "rollouts.jsonl"
    script = [[call("increment_counter", count=3)], "done"]
    agent = gymkit.SimpleAgent(gymkit.Model.scripted(script, token_ids=True))
    gymkit.Env("counter").rollouts(agent, output=output, repeats=2, progress=False)
    return [codec.loads(line) for line in output.read_bytes().splitlines()]


def calls(row: Row) -> list[Row]:
    found: list[Row] = row["ng_trajectory"]["model_calls"]
    return found


def fail(row: Row) -> None:
    calls(row)[-1]["response_metadata"] |= {"status_code": 503, "error_category": "upstream_error"}


def runaway(row: Row) -> None:
    calls(row)[-1]["response_metadata"]["finish_reason"] = "max_output_tokens"
    calls(row)[-1]["response"]["output"] = []


def hollow(row: Row) -> None:
    row["ng_trajectory"]["turns"][-1]["answer"] = None
    calls(row)[-1]["response"]["output"] = []


FAULTS: dict[str, Callable[[Row], Any]] = {
    "record_unreadable": lambda row: row["ng_trajectory"].update(schema_version="9"),
    "rollout_missing_agent_turns": lambda row: row["ng_trajectory"].update(turns=[]),
    "rollout_ended_on_failed_model_call": fail,
    "model_call_failed": fail,
    "agent_turn_hollow": hollow,
    "model_call_zero_completion_tokens": lambda row: calls(row)[0]["token_stats"].update(completion_tokens=0),
    "model_call_missing_token_counts": lambda row: calls(row)[0]["token_stats"].update(prompt_tokens=None),
    "trajectory_capture_mismatch": lambda row: calls(row)[0].update(model_call_id="another"),
    "rollout_token_count_mismatch": lambda row: row["response"]["usage"].update(output_tokens=1),
    "model_call_runaway_generation": runaway,
}


def test_a_sound_row_is_healthy(rows: list[Row]) -> None:
    assert check_row(rows[0]) == ([], [])


@pytest.mark.parametrize("check", FAULTS)
def test_each_check_fires_on_its_fault(check: str, rows: list[Row]) -> None:
    row = deepcopy(rows[0])
    FAULTS[check](row)
    assert check in {finding.check for finding in check_row(row).findings}


def test_without_evidence_a_row_is_unobserved_and_not_healthy(rows: list[Row]) -> None:
    bare = {key: value for key, value in rows[0].items() if not key.startswith("ng_")}
    findings, unobserved = check_row(bare)
    assert findings == []
    assert "model_call_failed" in unobserved


def written(path: Path, rows: list[Row]) -> Path:
    path.write_bytes(b"".join(codec.dumps(row) + b"\n" for row in rows))
    return path


def test_a_run_adds_up(rows: list[Row], tmp_path: Path) -> None:
    rows = deepcopy(rows)
    for row in rows:
        if row["_ng_task_index"] == 2:
            fail(row)
    path = written(tmp_path / "a.jsonl", [*rows, rows[0]])
    with path.open("ab") as file:
        file.write(b"{torn\n")
    examined = examine(path)
    summary = examined.summary()
    assert summary["run"]["verdicts"] == {"healthy": 8, "unhealthy": 4}
    assert summary["run"]["issues"]["rollout_duplicate_identity"] == 1
    assert summary["run"]["issues"]["record_unreadable"] == 1
    assert summary["run"]["issues"]["task_consistently_unhealthy"] == 1
    assert summary["run"]["stats"]["model_call_errors"] == {
        "total": 2,
        "by_status": {"503": 2},
        "rollouts_affected": 2,
        "ended_on_error": 2,
    }
    assert summary["tasks"]["2"]["flags"] == ["task_consistently_unhealthy"]
    tokens = summary["run"]["stats"]["tokens"]
    assert tokens["prompt"] == tokens["capture_prompt"] > 0


def test_files_of_two_runs_in_one_folder_stay_apart(rows: list[Row], tmp_path: Path) -> None:
    runs = {stem: examine(written(tmp_path / f"{stem}.jsonl", rows)) for stem in "ab"}
    assert {name.name for name in runs["a"].write()} == {"rollout_verdicts.jsonl", "quality_summary.json"}
    names = {name.name for stem, run in runs.items() for name in run.write(f"{stem}_")}
    assert names == {f"{stem}_{name}" for stem in "ab" for name in ("rollout_verdicts.jsonl", "quality_summary.json")}
    lines = (tmp_path / "a_rollout_verdicts.jsonl").read_bytes().splitlines()
    assert codec.loads(lines[0])["verdict"] == "healthy"


def test_checks_can_be_ignored_by_name(rows: list[Row], tmp_path: Path) -> None:
    row = deepcopy(rows[0])
    FAULTS["rollout_token_count_mismatch"](row)
    path = written(tmp_path / "a.jsonl", [row])
    assert examine(path, ["rollout_token_count_mismatch"]).verdicts[0].verdict == "healthy"
    with pytest.raises(ConfigError, match="model_call_failed"):
        examine(path, ["model_call_faild"])


def test_rollouts_tell_their_health(rows: list[Row], tmp_path: Path) -> None:
    row = deepcopy(rows[0])
    fail(row)
    health = gymkit.Rollouts.read(written(tmp_path / "a.jsonl", [row, *rows[1:]])).health()
    assert health.frame["verdict"].value_counts().to_dict() == {"healthy": 9, "unhealthy": 1, "unobserved": 0}
    assert set(health.findings["check"]) == {"model_call_failed", "rollout_ended_on_failed_model_call"}
    assert "9 healthy, 1 unhealthy" in repr(health)
