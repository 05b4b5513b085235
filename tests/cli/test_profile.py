"""``eval profile`` of a run on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gymkit.cli.app import app
from gymkit.wire import codec
from tests.cli.conftest import ROOT

RUNS = ROOT / "tests/data/nemo_gym"
run = CliRunner().invoke


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """A copy of a run that NeMo Gym wrote, without its profile."""
    for name in ("rollouts.jsonl", "rollouts_materialized_inputs.jsonl"):
        shutil.copy(RUNS / "graded" / name, tmp_path / name)
    return tmp_path / "rollouts.jsonl"


def test_the_seeds_form_writes_what_nemo_gym_writes(graded: Path) -> None:
    planned = graded.with_name("rollouts_materialized_inputs.jsonl")
    partial = "++allow_partial_rollouts=true"
    result = run(
        app,
        [
            "eval",
            "profile",
            f"++rollouts_jsonl_fpath={graded}",
            f"++materialized_inputs_jsonl_fpath={planned}",
            partial,
        ],
    )
    assert result.exit_code == 0, result.stderr
    names = ["rollouts_reward_profiling.jsonl", "rollouts_agent_metrics.json", "rollouts_repeat_level_metrics.json"]
    assert [Path(line).name for line in result.stdout.splitlines()] == names
    theirs = codec.loads((RUNS / "graded/rollouts_agent_metrics.json").read_bytes())
    assert codec.loads(graded.with_name(names[1]).read_bytes()) == theirs


def test_flags_and_the_file_beside_it(graded: Path) -> None:
    assert run(app, ["eval", "profile", "--rollouts", str(graded), "--allow-partial"]).exit_code == 0


def test_missing_rollouts_are_refused(graded: Path) -> None:
    result = run(app, ["eval", "profile", "--rollouts", str(graded)])
    assert result.exit_code == 1
    assert "Error:" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ([], 2, "rollouts_jsonl_fpath is missing"),
        (["--rollouts", "nowhere.jsonl"], 1, "nowhere"),
        (["--rollouts", "a.jsonl", "+limit=3"], 2, "limit has no effect in this command"),
    ],
)
def test_mistakes(arguments: list[str], status: int, sentence: str) -> None:
    result = run(app, ["eval", "profile", *arguments])
    assert result.exit_code == status
    assert sentence in result.stderr
