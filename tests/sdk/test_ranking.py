"""Several runs against a baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

import gymkit as gk
from gymkit.errors import ConfigError
from tests.frames.samples import ours, write_run


def run(folder: Path, rewards: list[float]) -> gk.Rollouts:
    folder.mkdir()
    return gk.Rollouts.read(write_run(folder, [ours(task, reward=reward) for task, reward in enumerate(rewards)]))


def test_runs_are_ranked_by_their_difference_from_the_baseline(tmp_path: Path) -> None:
    runs = {
        "old": run(tmp_path / "old", [0.0] * 8 + [1.0] * 4),
        "same": run(tmp_path / "same", [0.0] * 8 + [1.0] * 4),
        "new": run(tmp_path / "new", [1.0] * 12),
    }
    ranking = gk.compare_many(runs, baseline="old")
    assert ranking.frame["run"].tolist() == ["new", "same"]
    assert ranking.frame["verdict"].tolist() == ["better", "inconclusive"]
    alone = runs["new"].compare(runs["old"])
    assert ranking["new"]["p_value"].value == alone["p_value"].value
    assert ranking.frame["p_holm"].iloc[0] == 2 * alone["p_value"].value
    assert "2 runs against old" in repr(ranking)


def test_a_baseline_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="baseline 'x' and at least one other run are needed; given: a"):
        gk.compare_many({"a": run(tmp_path / "a", [1.0])}, baseline="x")
