"""Agents that people have already, out of a YAML file and from a shell: a program, and an agent of a framework."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gymkit.wire import codec
from tests.cli.conftest import Gymkit, Started

PROGRAM = """
import json, os, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def post(url, **body):
    return json.load(opener.open(urllib.request.Request(url, json.dumps(body).encode())))
def count(number):
    call = {"name": "increment_counter", "arguments": {"count": number}}
    post(os.environ["GYMKIT_MCP_URL"], jsonrpc="2.0", id=1, method="tools/call", params=call)
for word in sys.stdin.read().split():
    if word.isdigit():
        count(int(word))
post(os.environ["OPENAI_BASE_URL"] + "/responses", model="m", input="well?")
print(" ".join(sorted(os.listdir("notes"))) if os.path.isdir("notes") else "done")
"""
MADE = """
from agents import Agent

def adder(kit):
    return Agent(name="adder", model=kit.model, tools=kit.tools)

def _private(kit):
    return None
"""
ENVIRONMENT = """\
the_counter: {resources_servers: {counter: {entrypoint: app.py, domain: agent}}}
policy: {responses_api_models: {scripted_model: {entrypoint: app.py, replies: [WORDS]}}}
""".replace("WORDS", ", ".join(["done"] * 10))
REFERENCES = """\
      resources_server: {type: resources_servers, name: the_counter}
      model_server: {type: responses_api_models, name: policy}
"""


def yaml(implementation: str, *lines: str, references: str = REFERENCES) -> str:
    own = "".join(f"      {line}\n" for line in lines)
    return f"{ENVIRONMENT}mine:\n  responses_api_agents:\n    {implementation}:\n{own}{references}"


def program(*lines: str) -> str:
    argv = f"argv: ['{sys.executable}', '{{entrypoint}}']"
    return yaml("command_agent", "entrypoint: program.py", argv, *lines)


def rows(path: Path) -> list[dict[str, Any]]:
    return [codec.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "made.py").write_text(MADE)


RUN = ("eval", "run", "-i", "data/counter.jsonl", "-o", "r.jsonl")


def test_a_program_in_one_process_and_over_sockets(
    tmp_path: Path, gymkit: Gymkit, start: Callable[..., Started]
) -> None:
    (tmp_path / "c.yaml").write_text(program("concurrency: 2"))
    ended = gymkit(*RUN, "--config", "c.yaml")
    assert (ended.status, "mean/reward: 1.0 (5 of 5 rollouts)" in ended.out) == (0, True), ended
    told = rows(tmp_path / "r_materialized_inputs.jsonl")[0]["gymkit"]["config"]["agent"]
    assert (told["type"], told["template"], "concurrency" in told, "env" in told) == (
        *("command_agent", "{conversation}"),
        False,
        False,
    )

    servers = start("--config", "c.yaml", "+head_server.port=0")
    assert "responses_api_agents/command_agent" in "".join(servers.lines)
    ended = gymkit(*RUN, "--no-serve", "--agent", "mine", f"+head_server.port={servers.port}")
    assert (ended.status, "mean/reward: 1.0 (5 of 5 rollouts)" in ended.out) == (0, True), ended
    assert servers.stop(signal.SIGTERM) == 143


def test_its_model_calls_are_recorded_where_that_is_switched_on(tmp_path: Path, gymkit: Gymkit) -> None:
    (tmp_path / "c.yaml").write_text(program())
    switches = ("+observability_enabled=true", f"+model_call_capture_dir={tmp_path / 'calls'}")
    assert gymkit(*RUN, "--config", "c.yaml", *switches).status == 0
    first = rows(tmp_path / "r.jsonl")[0]
    assert len(first["ng_trajectory"]["model_calls"]) == 1
    assert first["ng_trajectory"]["gaps"] == []


def test_a_program_is_given_the_skills_of_the_run(tmp_path: Path, gymkit: Gymkit) -> None:
    for name in ("adding", "counting"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(f"---\nname: {name}\n---\nOne, two.\n")
    (tmp_path / "c.yaml").write_text(program("skills_dir: notes"))
    ended = gymkit(*RUN, "--config", "c.yaml", "+skills.path=skills", "--limit", "1")
    assert ended.status == 0, ended
    assert rows(tmp_path / "r.jsonl")[0]["response"]["output"][-1]["content"][0]["text"] == "adding counting"


def test_an_agent_that_is_driven_in_sessions_is_given_none(tmp_path: Path, gymkit: Gymkit) -> None:
    front = """\
turn:
  environment_servers:
    single_agent_turn_legacy:
      cleanup_timeout_seconds: 5
      resources_server: {type: resources_servers, name: the_counter}
      agent_server: {type: responses_api_agents, name: mine}
"""
    (tmp_path / "skills" / "adding").mkdir(parents=True)
    (tmp_path / "skills" / "adding" / "SKILL.md").write_text("---\nname: adding\n---\n")
    (tmp_path / "c.yaml").write_text(program() + front)
    ended = gymkit(*RUN, "--config", "c.yaml", "+skills.path=skills")
    assert (ended.status, "turn drives agent sessions, which carry no skills" in ended.err) == (1, True), ended


@pytest.mark.skipif(find_spec("agents") is None, reason="openai-agents is not installed")
def test_an_agent_of_a_framework(tmp_path: Path, gymkit: Gymkit) -> None:
    lines = ("entrypoint: made.py", "framework: openai-agents", "function: adder")
    (tmp_path / "c.yaml").write_text(yaml("framework_agent", *lines))
    ended = gymkit(*RUN, "--config", "c.yaml", "--limit", "2")
    assert ended.status == 0, ended
    assert [row["response"]["output"][-1]["content"][0]["text"] for row in rows(tmp_path / "r.jsonl")] == ["done"] * 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (yaml("command_agent", "argv: [no-such-program]"), "mine: there is no program 'no-such-program' on the PATH"),
        (yaml("command_agent", "argv: [sh, '{entrypoint}']"), "mine: entrypoint must name a file beside the conf"),
        (yaml("command_agent", "argv: [sh]", "skill_dir: x"), "skill_dir is not a setting of command_agent; did"),
        (yaml("command_agent", "argv: []"), "argv is wrong"),
        (f"token_id_capture: {{sink: a}}\n{program()}", "token_id_capture.sink is not supported here: tokens are"),
        (yaml("command_agent", "argv: [sh]", references=""), "resources_server is missing"),
        (yaml("command_agent", "argv: [sh]", "skills_dir: ../x"), "must be a folder inside the working folder"),
        (yaml("framework_agent", "framework: openai-agents"), "function is missing"),
        (yaml("framework_agent", "framework: x", "function: adder", "entrypoint: nowhere.py"), "entrypoint must name"),
        (
            yaml("framework_agent", "framework: x", "function: ader", "entrypoint: made.py"),
            "has no function 'ader'; did",
        ),
        (yaml("framework_agent", "framework: opnai-agents", "function: adder", "entrypoint: made.py"), "openai-agents"),
        (yaml("framework_agent", "framework: x", "function: x", "entrypoint: broken.py"), "cannot be loaded: Zero"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(tmp_path: Path, gymkit: Gymkit, text: str, sentence: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "made.py").write_text(MADE if find_spec("agents") else MADE.replace("from agents import Agent", ""))
    (tmp_path / "c.yaml").write_text(text)
    ended = gymkit(*RUN, "--config", "c.yaml")
    assert (ended.status, sentence in ended.err) == (1, True), ended.err
