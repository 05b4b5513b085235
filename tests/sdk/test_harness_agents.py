"""Agents of frameworks and programs, as a notebook uses them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.agents.framework import Kit
from gymkit.errors import ConfigError, ResumeMismatch
from gymkit.testing.agent import call

CODE = """
import json, os, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for word in sys.argv[1].split():
    if word.lstrip("-").isdigit():
        call = {"name": "increment_counter", "arguments": {"count": int(word)}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        opener.open(urllib.request.Request(os.environ["GYMKIT_MCP_URL"], json.dumps(body).encode()))
print(json.dumps({"result": "done"}))
"""
PROGRAM = [sys.executable, "-c", CODE, "{prompt}"]


def script(params: dict[str, Any]) -> Any:
    """Does what the prompt says: every call at once, then an answer."""
    if any(item.get("type") == "function_call_output" for item in params["input"]):
        return "done"
    text = str(params["input"][0]["content"])
    words = [word for word in text.split() if word.lstrip("-").isdigit()]
    return [call("increment_counter", f"c{index}", count=int(word)) for index, word in enumerate(words)]


def adder(kit: Kit) -> Any:
    from agents import Agent

    return Agent(name="adder", model=kit.model, tools=kit.tools)


def other(kit: Kit) -> Any:
    from agents import Agent

    return Agent(name="adder", instructions="Add.", model=kit.model, tools=kit.tools)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "rollouts.jsonl"


def test_an_agent_of_a_framework_does_rollouts(output: Path) -> None:
    pytest.importorskip("agents", reason="openai-agents is not installed")
    env, model = gk.Env("counter"), gk.Model.scripted(script)
    agent = gk.Agent.adapt("openai-agents", adder, model, concurrency=4)
    rollouts = env.rollouts(agent, repeats=2, output=output, progress=False)
    assert rollouts.rewards["reward"].tolist() == [1.0] * 10
    assert rollouts.tool_calls["executed"].all()
    assert "counter × adder: 10 of 10" in repr(rollouts)
    assert len(rollouts.model_calls) == 20, "all that the framework asked its model"
    told = rollouts.config["agent"]
    assert (told["framework"], told["function"], told["model"]["model"]) == ("openai-agents", "adder", "scripted")
    changed = gk.Agent.adapt("openai-agents", other, model, name="adder")
    with pytest.raises(ResumeMismatch, match=r"agent\.(function|source)"):
        env.rollouts(changed, repeats=2, output=output, resume=True, progress=False)


def test_a_program_does_rollouts(output: Path) -> None:
    agent = gk.Agent.command(PROGRAM, answer="result", name="adder")
    rollouts = gk.Env("counter").rollouts(agent, output=output, progress=False)
    assert rollouts.rewards["reward"].tolist() == [1.0] * 5
    assert set(rollouts.trajectories["text"].dropna()) >= {"done"}
    assert rollouts.rewards["total_tokens"].isna().all(), "it told nothing of its model"
    assert repr(agent) == "<Agent adder>"
    assert gk.Agent.command(PROGRAM).name == Path(sys.executable).name


def test_a_program_on_a_model_that_is_served_elsewhere(output: Path) -> None:
    code = (
        "import json, os, sys, urllib.request as u; body = {'model': 'm', 'input': sys.stdin.read()};"
        "request = u.Request(os.environ['OPENAI_BASE_URL'] + '/responses', json.dumps(body).encode());"
        "print(u.build_opener(u.ProxyHandler({})).open(request).read().decode())"
    )
    with gk.Model.scripted(lambda params: "hello").serve() as hosted:
        agent = gk.Agent.command([sys.executable, "-c", code], hosted.url)
        rollouts = gk.Env("counter").rollouts(agent, limit=1, output=output, progress=False)
    assert rollouts.trajectories["text"].str.contains("hello").any()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: gk.Agent.adapt("openai_agents", adder, "http://127.0.0.1:1"), "openai-agents"),  # type: ignore[arg-type]
        (lambda: gk.Agent.adapt("openai-agents", "adder", "http://127.0.0.1:1"), "no function"),  # type: ignore[arg-type]
        (lambda: gk.Agent.command(["no-such-program-anywhere"]), "no-such-program-anywhere"),
        (lambda: gk.Agent.command([]), "argv"),
        (lambda: gk.Agent.command(PROGRAM, output_limit=0), "output_limit"),
        (lambda: gk.Agent.command(PROGRAM, concurrency=0), "concurrency"),
        (lambda: gk.Agent.command(PROGRAM, "ftp://x"), "http"),
    ],
)
def test_what_cannot_be_used_is_said_at_once(make: Any, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        make()
