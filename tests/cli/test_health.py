"""``gymkit eval health-check``."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

import gymkit
from gymkit.cli.app import app


def test_it_writes_the_verdicts_and_says_what_was_found(tmp_path: Path) -> None:
    agent = gymkit.SimpleAgent(gymkit.Model.scripted(["x"], token_ids=True))
    gymkit.Env("counter").rollouts(agent, output=tmp_path / "rollouts.jsonl", progress=False)
    told = CliRunner().invoke(app, ["eval", "health-check", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "5 healthy, 0 unhealthy" in told.output
    assert (tmp_path / "rollout_verdicts.jsonl").read_bytes().count(b"\n") == 5
    as_json = CliRunner().invoke(app, ["eval", "health-check", str(tmp_path / "rollouts.jsonl"), "--json"])
    assert json.loads(as_json.output)["run"]["verdicts"] == {"healthy": 5}


def test_a_run_that_is_not_there_and_a_check_that_is_none_are_told(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["eval", "health-check", str(tmp_path)]).exit_code != 0
    (tmp_path / "rollouts.jsonl").touch()
    assert CliRunner().invoke(app, ["eval", "health-check", str(tmp_path), "--ignore", "no_such_check"]).exit_code != 0
