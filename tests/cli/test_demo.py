"""``gymkit demo``: the first thing a person runs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Gymkit


def test_rewards_and_their_denominator(tmp_path: Path, gymkit: Gymkit) -> None:
    ended = gymkit("demo")
    assert ended.status == 0
    assert "mean/reward: 1.0 (5 of 5 rollouts)" in ended.out
    assert ended.out.count("mean") == 1
    assert ended.out.count("scored") == 5, "one a rollout, in the table"
    names = {path.name for path in (tmp_path / "results").iterdir()}
    assert {"rollouts.jsonl", "rollouts_failures.jsonl", "rollouts_materialized_inputs.jsonl"} <= names
    assert gymkit("demo").status == 0


def test_another_run_is_not_replaced(tmp_path: Path, gymkit: Gymkit) -> None:
    (tmp_path / "results").mkdir()
    results = tmp_path / "results/rollouts.jsonl"
    results.write_bytes(b'{"reward": 1.0, "_ng_task_index": 0, "_ng_rollout_index": 0}\n')
    ended = gymkit("demo")
    assert ended.status == 1
    assert "holds another run" in ended.err
    assert results.read_bytes().startswith(b'{"reward": 1.0')
