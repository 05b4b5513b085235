"""``eval aggregate``, ``reverify`` and ``compare`` of runs on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gymkit as gk
from gymkit.cli.app import app
from gymkit.wire import codec
from tests.cli.conftest import ROOT, Started

RUNS = ROOT / "tests/data/nemo_gym"
run = CliRunner().invoke
YAML = """
the_weather:
  resources_servers:
    weather: {entrypoint: app.py, domain: agent}
"""


def asks(params: dict[str, Any]) -> Any:
    yield "get_weather", {"city": "Oslo"}
    return "cold"


@pytest.fixture
def weather(tmp_path: Path) -> Path:
    """A run in which one reward was tampered with."""
    path = tmp_path / "run.jsonl"
    gk.Env("weather").rollouts(gk.Agent(asks), output=path, progress=False)
    rows = [codec.loads(line) for line in path.read_bytes().splitlines()]
    rows[0]["reward"] = 0.0
    path.write_bytes(b"".join(codec.dumps(row) + b"\n" for row in rows))
    return path


def test_aggregate_says_what_counts(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "graded", tmp_path / "graded")
    arguments = ["-i", f"{tmp_path}/graded/rollouts.jsonl", "-o", f"{tmp_path}/all.jsonl"]
    result = run(app, ["eval", "aggregate", *arguments])
    assert result.exit_code == 0, result.stderr
    assert "in no metric: 5 rollouts (2 remote_agent_error, 3 masked)" in result.stdout
    theirs = codec.loads((RUNS / "graded/rollouts_aggregate_metrics.json").read_bytes())
    assert codec.loads((tmp_path / "all_aggregate_metrics.json").read_bytes()) == theirs


def test_nemo_gyms_form_of_aggregate(tmp_path: Path) -> None:
    settings = [f"+input_glob={RUNS}/graded/rollouts.jsonl", f"+output_jsonl_fpath={tmp_path}/all.jsonl"]
    more = ["+merge_shards=false", "+count_failure_classes_as_zero=[remote_agent_error]"]
    result = run(app, ["eval", "aggregate", *settings, *more, "++count_missing_rollouts_as_zero=true"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "counted as zero: 2 failed, 0 missing" in result.stdout
    assert not (tmp_path / "all.jsonl").exists()


def test_compare_writes_the_report_and_prints_it_by_task(tmp_path: Path) -> None:
    paths = ["--baseline", f"{RUNS}/mixed/rollouts.jsonl", "--candidates", f"{RUNS}/graded/rollouts.jsonl"]
    result = run(app, ["eval", "compare", *paths, "-o", str(tmp_path)])
    assert result.exit_code == 0, result.stderr
    assert "3 paired tasks: 1 won, 1 lost, 1 tied" in result.stdout
    report = codec.loads((tmp_path / "compare_report.json").read_bytes())
    assert report["schema_version"] == "1"
    assert (tmp_path / "compare_report.md").exists()


def reverified(result: Any) -> gk.Rollouts:
    assert result.exit_code == 0, result.stderr
    assert "after − before, by task:" in result.stdout
    return gk.Rollouts.read(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("verifier", [["--env", "weather"], ["--config", "weather.yaml"]])
def test_reverify_with_an_environment_or_a_configuration(
    weather: Path, verifier: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(weather.parent)
    Path("weather.yaml").write_text(YAML)
    arguments = ["--rollouts", str(weather), "-o", f"{weather.parent}/new.jsonl", *verifier]
    new = reverified(run(app, ["eval", "reverify", *arguments]))
    assert set(new.rewards["reward"]) == {1.0}
    again = run(app, ["eval", "reverify", *arguments])
    assert again.exit_code == 1
    assert "is there already" in again.stderr


SYNONYMS = """
the_synonyms:
  resources_servers:
    synonyms: {entrypoint: app.py, domain: agent}
"""


@pytest.mark.parametrize("verifier", [["--env", "synonyms"], ["--config", "synonyms.yaml"]])
def test_reverify_with_another_environment_is_no_silent_zero(
    weather: Path, verifier: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(weather.parent)
    Path("synonyms.yaml").write_text(SYNONYMS)
    arguments = ["eval", "reverify", "--rollouts", str(weather), "-o", "new.jsonl", *verifier]
    refused = run(app, arguments)
    assert refused.exit_code == 1
    assert "run.jsonl is a run of weather, which " in refused.stderr
    assert "(--force) does it all the same, into unsafe_new.jsonl" in refused.stderr
    assert not list(weather.parent.glob("*new*"))
    assert reverified(run(app, [*arguments, "--force"])).path.name == "unsafe_new.jsonl"


def test_reverify_with_running_servers(weather: Path, start: Callable[..., Started]) -> None:
    (weather.parent / "weather.yaml").write_text(YAML)
    servers = start("+config_paths=[weather.yaml]", "+head_server.port=0")
    arguments = ["--rollouts", str(weather), "-o", f"{weather.parent}/new.jsonl", "--no-serve"]
    new = reverified(run(app, ["eval", "reverify", *arguments, f"+head_server.port={servers.port}"]))
    assert set(new.rewards["reward"]) == {1.0}


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["aggregate", "-i", "nowhere*", "-o", "x.jsonl"], 1, "no file matches input_glob='nowhere*'"),
        (["aggregate", "-i", "x"], 2, "output_jsonl_fpath is missing"),
        (["compare", "--baseline", "a.jsonl", "--candidates", "b.jsonl"], 1, "a_aggregate_metrics.json is not there"),
        (["compare", "--baseline", "a.jsonl", "--candidates", "b,c"], 2, "candidate_rollouts_jsonl_fpaths"),
        (["compare", "--baseline", "a", "--candidates", "b", "--report-format", "pdf"], 2, "report_format"),
        (["reverify", "--rollouts", "a.jsonl", "-o", "b.jsonl"], 1, "there is no verifier: name an environment"),
        (["reverify", "--rollouts", "a.jsonl", "-o", "b.jsonl", "--env", "weather"], 1, "is not there, and a verifier"),
    ],
)
def test_mistakes(
    arguments: list[str], status: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(app, ["eval", *arguments])
    assert result.exit_code == status, result.output
    assert sentence in result.stderr
