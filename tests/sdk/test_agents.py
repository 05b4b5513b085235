"""SimpleAgent and Agent as a notebook uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.errors import ConfigError, ResumeMismatch
from gymkit.servers.hosting import serve
from gymkit.servers.route import Route
from gymkit.testing.agent import Fault, ScriptedAgent, answer, call, outputs


def adder(params: dict[str, Any]) -> Any:
    """Does what the prompt says: one call a step, then an answer."""
    numbers = [int(word) for word in params["input"][0]["content"].split() if word.lstrip("-").isdigit()]
    done = len(outputs(params))
    return [call("increment_counter", f"c{done}", count=numbers[done])] if done < len(numbers) else [answer("done")]


def generator(params: dict[str, Any]) -> Iterator[Any]:
    for word in params["input"][0]["content"].split():
        if word.lstrip("-").isdigit():
            yield "increment_counter", {"count": int(word)}
    return "done"


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "rollouts.jsonl"


def test_a_model_becomes_an_agent(output: Path) -> None:
    agent = gk.SimpleAgent(gk.Model.scripted(adder), max_steps=8)
    rollouts = gk.Env("counter").rollouts(agent, repeats=2, output=output, progress=False)
    assert rollouts.rewards["reward"].tolist() == [1.0] * 10
    assert set(rollouts.rewards["termination_reason"]) == {"message"}
    assert rollouts.rewards["steps"].min() == 2
    assert rollouts.tool_calls["executed"].all()
    assert "counter × simple_agent: 10 of 10" in repr(rollouts)
    assert rollouts.config["agent"]["model"]["model"] == "scripted"
    assert rollouts.config["agent"]["max_steps"] == 8
    assert repr(agent) == "<SimpleAgent simple_agent scripted>"


def test_a_service_or_a_route_may_stand_for_the_model(output: Path) -> None:
    model = ScriptedAgent(adder)
    with serve(model) as hosted:
        gk.Env("counter").rollouts(gk.SimpleAgent(hosted.url), limit=1, output=output, progress=False)
        assert {each.path for each in model.received} == {"/v1/responses"}
    model.received.clear()
    agent = gk.SimpleAgent(Route.to_app("m", model))
    gk.Env("counter").rollouts(agent, limit=1, output=output, progress=False)
    assert {each.path for each in model.received} == {"/ng-rollout/0-0/v1/responses"}


def test_a_model_that_fails_is_a_failure_and_no_reward(output: Path) -> None:
    agent = gk.SimpleAgent(gk.Model.scripted(lambda params: Fault(429, b"slow down")))
    rollouts = gk.Env("counter").rollouts(agent, limit=2, output=output, progress=False)
    assert set(rollouts.rewards["status"]) == {"failed"}
    assert rollouts.rewards["reward"].isna().all()
    assert rollouts.failures["message"].str.contains("slow down").all()


@pytest.mark.parametrize("function", [adder, generator])
def test_a_function_becomes_an_agent(function: Any, output: Path) -> None:
    rollouts = gk.Env("counter").rollouts(gk.Agent(function), output=output, progress=False)
    assert rollouts.rewards["reward"].tolist() == [1.0] * 5
    assert rollouts.config["agent_ref"] == {"name": function.__name__}


def test_both_work_in_a_running_loop(output: Path) -> None:
    async def cell() -> list[float]:
        env = gk.Env("counter")
        first = await env.arollouts(gk.Agent(generator), output=output, progress=False)
        second = await env.arollouts(
            gk.SimpleAgent(gk.Model.scripted(adder)), output=output.with_name("s.jsonl"), progress=False
        )
        return [float(each.rewards["reward"].mean()) for each in (first, second)]

    assert asyncio.run(cell()) == [1.0, 1.0]


def test_a_resume_with_another_model_or_function_is_refused(output: Path) -> None:
    env = gk.Env("counter")
    env.rollouts(gk.Agent(adder, name="a"), limit=1, output=output, progress=False)
    with pytest.raises(ResumeMismatch, match=r"agent\.(function|source)"):
        env.rollouts(gk.Agent(generator, name="a"), limit=1, output=output, resume=True, progress=False)
    env.rollouts(gk.SimpleAgent(gk.Model.scripted(["x"])), limit=1, output=output, progress=False)
    with pytest.raises(ResumeMismatch, match=r"agent\.model"):
        env.rollouts(gk.SimpleAgent("http://127.0.0.1:1"), limit=1, output=output, resume=True, progress=False)


def test_a_function_in_an_environment_elsewhere(output: Path) -> None:
    near = gk.Env("counter")
    with near.serve() as hosted:
        far = gk.Env(hosted.url, tasks=near.rows)
        assert far.rollouts(gk.Agent(generator), output=output, progress=False).rewards["reward"].mean() == 1.0


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: gk.Agent("http://127.0.0.1:1"), "RemoteAgent"),  # type: ignore[arg-type]
        (lambda: gk.Agent(adder, concurrency=0), "concurrency"),
        (lambda: gk.Agent(adder, max_steps=0), "max_steps"),
        (lambda: gk.SimpleAgent("ftp://x"), "http"),
        (lambda: gk.SimpleAgent("http://me:hunter2@x"), "credentials"),
        (lambda: gk.SimpleAgent("http://x", max_steps=0), "max_steps"),
        (lambda: gk.SimpleAgent("http://x", concurrency=0), "concurrency"),
        (lambda: gk.SimpleAgent("http://x", run_timeout_secs=float("inf")), "run_timeout_secs"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(make: Any, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as caught:
        make()
    assert "hunter2" not in str(caught.value)
