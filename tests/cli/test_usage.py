"""What the commands say of themselves, and what wrong usage gets."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from gymkit import __version__
from gymkit.cli.app import app
from tests.cli.conftest import ROOT, Gymkit, environment

run = CliRunner().invoke


def test_version() -> None:
    assert run(app, ["--version"]).output == f"gymkit {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["env"], ["eval"]])
def test_no_command_prints_the_help_and_fails(arguments: list[str]) -> None:
    result = run(app, arguments)
    assert result.exit_code == 1
    assert "Usage:" in result.output
    assert "Commands:" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["env", "start"],
        ["eval", "run"],
        ["eval", "aggregate"],
        ["eval", "reverify"],
        ["eval", "compare"],
        ["demo"],
        ["lab"],
    ],
)
def test_each_command_explains_itself(arguments: list[str]) -> None:
    result = run(app, [*arguments, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize("group", [[], ["eval"], ["env"], ["usersim"]])
def test_each_line_of_the_list_of_commands_is_a_whole_sentence(group: list[str]) -> None:
    listed = run(app, [*group, "--help"]).output.partition("Commands:")[2].strip().splitlines()
    assert listed and all(line.endswith(".") and not line.endswith("...") for line in listed)


@pytest.mark.parametrize(
    ("command", "flag"), [("run", "--input"), ("profile", "--rollouts"), ("compare", "--baseline")]
)
def test_a_missing_setting_is_named_by_its_flag_too(command: str, flag: str) -> None:
    result = run(app, ["eval", command])
    assert result.exit_code == 2
    assert f"is missing; give {flag}, or +" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["eval", "run", "--limmit", "3"], "--limit"),
        (["eval", "run", "--limit", "three"], "valid integer"),
        (["evl"], "evl"),
    ],
)
def test_wrong_usage_has_status_2(arguments: list[str], sentence: str) -> None:
    result = run(app, arguments)
    assert result.exit_code == 2
    assert sentence in result.output


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\nfrom gymkit.cli.app import app\ntry: app(['eval', 'run', '--help'])\nexcept SystemExit: pass\n"
        "heavy = {'pandas', 'omegaconf', 'hydra', 'aiohttp', 'httpx', 'starlette', 'uvicorn', 'scipy', 'ipywidgets'}\n"
        "print('LOADED', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "LOADED []"


def test_mistakes_are_one_line_without_a_traceback(gymkit: Gymkit) -> None:
    ended = gymkit("eval", "run", "--no-serve", "--input", "data/counter.jsonl", "+limmit=1")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == "Error: the command line: limmit is not a setting; did you mean 'limit'?\n"


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["env", "start"], 1, "there is nothing to start"),
        (["env", "start", "+config_paths=[nowhere.yaml]"], 1, "names nowhere.yaml, which does not exist"),
        (
            ["env", "start", "+x.resources_servers.conter={}"],
            1,
            "gymkit has no conter among its resources_servers; did you mean 'counter'?",
        ),
        (["eval", "run", "-i", "a", "-o", "b"], 1, "there is no file a: looked for"),
        (["eval", "run", "-i", "data/counter.jsonl", "-o", "b"], 1, "there is no agent to run"),
        (
            ["eval", "run", "-i", "data/counter.jsonl"],
            2,
            "output_jsonl_fpath is missing; give --output, or +output_jsonl_fpath=…",
        ),
        (
            ["eval", "run", "-i", "data/counter.jsonl", "-o", "b", "--limit", "0"],
            2,
            "limit is wrong: input should be greater than 0",
        ),
        (
            ["eval", "run", "-i", "data/counter.jsonl", "-o", "b", "--limit", "1", "+limit=2"],
            1,
            "the command line gives limit twice",
        ),
        (
            ["eval", "run", "-i", "data/counter.jsonl", "-o", "b", "+split=train"],
            2,
            "split has no effect in this command",
        ),
        (
            ["eval", "run", "-i", "data/counter.jsonl", "-o", "b", "+route_failures_to_sidecar=false"],
            2,
            "route_failures_to_sidecar is wrong",
        ),
    ],
)
def test_mistakes(arguments: list[str], status: int, sentence: str) -> None:
    result = run(app, arguments)
    assert result.exit_code == status
    assert sentence in result.stderr
