"""``gymkit eval health-check``."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

import gymkit as gk
from gymkit.cli.app import app
from gymkit.servers.hosting import serve
from gymkit.testing.agent import Fault, ScriptedAgent
from tests.cli.conftest import Gymkit, seed_yaml


def test_it_writes_the_verdicts_and_says_what_was_found(tmp_path: Path) -> None:
    agent = gk.SimpleAgent(gk.Model.scripted(["x"], token_ids=True))
    gk.Env("counter").rollouts(agent, output=tmp_path / "rollouts.jsonl", progress=False)
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


RUN = ("eval", "run", "--config", "c.yaml", "-i", "data/counter.jsonl", "-o", "out/r.jsonl")
NAMES = ("quality_summary.json", "rollout_verdicts.jsonl")
YAML = """\
the_counter: {resources_servers: {counter: {entrypoint: app.py, domain: agent}}}
policy: {responses_api_models: {scripted_model: {entrypoint: app.py, replies: [x, '', x, x, x]}}}
solo:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: the_counter}
      model_server: {type: responses_api_models, name: policy}
"""


def written(folder: Path) -> list[str]:
    return [name for name in NAMES if (folder / name).exists()]


def test_a_run_from_a_shell_writes_its_health_unless_told_not_to(tmp_path: Path, gymkit: Gymkit) -> None:
    (tmp_path / "c.yaml").write_text(YAML)
    recorded = ("+observability_enabled=true", f"+model_call_capture_dir={tmp_path / 'calls'}")
    for off in ("--no-health-check", "+disable_health_check=true", "+disable_aggregation=true"):
        assert gymkit(*RUN, off).status == 0
        assert written(tmp_path / "out") == []
    ended = gymkit(*RUN, *recorded, "--concurrency", "1", "--require-complete")
    assert ended.status == 0, ended
    assert written(tmp_path / "out") == list(NAMES)
    verdicts = [json.loads(line)["verdict"] for line in (tmp_path / "out" / NAMES[1]).read_text().splitlines()]
    assert f"{verdicts.count('unhealthy')} of 5 rows are unhealthy, see out" in ended.out
    summary = json.loads((tmp_path / "out" / NAMES[0]).read_text())
    assert summary["run"]["artifacts"]["captures"] == 5
    assert sum(summary["run"]["verdicts"].values()) == len(verdicts) == 5


def test_checks_are_ignored_by_name_and_a_wrong_name_starts_nothing(tmp_path: Path, gymkit: Gymkit) -> None:
    (tmp_path / "c.yaml").write_text(YAML)
    ended = gymkit(*RUN, "+health_check_ignored_checks=[model_call_faild]")
    assert (ended.status, "model_call_failed" in ended.err) == (1, True)
    assert not (tmp_path / "out").exists()
    assert gymkit(*RUN, "+health_check_ignored_checks=[model_call_missing_token_counts]").status == 0
    summary = json.loads((tmp_path / "out" / NAMES[0]).read_text())
    assert summary["run"]["ignored_checks"] == ["model_call_missing_token_counts"]


def test_a_run_that_is_not_complete_has_its_health_on_disk_too(tmp_path: Path, gymkit: Gymkit) -> None:
    with serve(ScriptedAgent(lambda _: Fault(503))) as hosted:
        (tmp_path / "c.yaml").write_text(seed_yaml(hosted.url))
        assert gymkit(*RUN, "--require-complete").status == 1
    assert written(tmp_path / "out") == list(NAMES)
