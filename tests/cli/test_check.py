"""``gymkit check URL``: a report to read and a status for scripts."""

from __future__ import annotations

from typer.testing import CliRunner

from gymkit.cli.app import app
from gymkit.servers.hosting import serve
from gymkit.testing.agent import Fault, ScriptedAgent

run = CliRunner().invoke


def test_a_good_service_passes(service: str) -> None:
    result = run(app, ["check", service])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{service} with the tasks of counter:")
    assert "fail" not in result.stdout.splitlines()[0]


def test_a_broken_service_fails() -> None:
    with serve(ScriptedAgent(lambda _: Fault(500))) as hosted:
        result = run(app, ["check", hosted.url, "--budget", "10"])
    assert result.exit_code == 1
    assert "FAIL" in result.stdout


def test_a_url_that_cannot_be_used() -> None:
    result = run(app, ["check", "localhost:9000"])
    assert result.exit_code == 1
    assert "Error: RemoteAgent: agent_base_url" in result.stderr


def test_an_unknown_environment_gets_the_nearest() -> None:
    result = run(app, ["check", "http://127.0.0.1:9", "--env", "countr"])
    assert result.exit_code == 1
    assert "did you mean 'counter'" in result.stderr
