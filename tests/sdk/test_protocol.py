"""Runs whose episodes an environment server plays: the shipped protocol, and one written in a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.environments.single_agent_turn import SingleAgentTurn, SingleAgentTurnTask
from gymkit.errors import InputError, ResumeMismatch
from gymkit.servers.episode import Episode, EpisodeFailed
from gymkit.servers.hosting import serve
from gymkit.servers.participant import Player, Room
from gymkit.testing.agent import ScriptedAgent
from tests.sdk.test_agents import adder, generator


class Twice(SingleAgentTurn):
    """The agent has a second turn, in which it is told what it said; the verdict is on both."""

    implementation = "twice"

    async def play(self, episode: Episode[SingleAgentTurnTask]) -> dict[str, Any]:
        params, fields = episode.task.responses_create_params, episode.task.task_data
        if fields["expected_count"] == 103:
            raise EpisodeFailed("this one is too long", terminal=True, kind="twice:too_long", stage="admission")
        room = await Room.open(self.resources, episode, fields)
        player = await Player.open(self.agent, episode, [room.direct_http()])
        first = await player.respond(params)
        asked = {"role": "user", "content": "Are you sure?", "type": "message"}
        second = await player.respond({**params, "input": [*params["input"], *first["output"], asked]})
        response = {**second, "output": [*first["output"], *second["output"]]}
        verdict = await room.verify({**fields, "responses_create_params": params, "response": response})
        return {**verdict, "turns": 2}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "rollouts.jsonl"


@pytest.mark.parametrize("make", [lambda: gk.SimpleAgent(gk.Model.scripted(adder)), lambda: gk.Agent(generator)])
def test_the_environment_server_decides_when_to_verify(make: Any, output: Path) -> None:
    rollouts = gk.Env("counter").rollouts(make(), protocol=SingleAgentTurn, output=output, repeats=2, progress=False)
    assert rollouts.rewards["reward"].tolist() == [1.0] * 10
    assert set(rollouts.rewards["termination_reason"]) == {"message"}
    assert rollouts.record(0)["_ng_result_type"] == "single_agent_turn"
    assert rollouts.record(0)["_ng_task_id"] == {"taskset": "counter", "task_id": "0"}
    assert rollouts.config["protocol"] == {"type": "single_agent_turn", "class": "SingleAgentTurn"}
    assert rollouts.tool_calls["executed"].all()
    assert rollouts.tasks["prompt"].str.startswith("add").all()
    kinds = rollouts.trajectories.query("task_index == 0 and rollout_index == 0")["kind"].tolist()
    assert kinds[0] == kinds[-1] == "message"


def test_a_service_plays_in_sessions_too(output: Path) -> None:
    with serve(ScriptedAgent(adder)) as hosted:
        agent = gk.RemoteAgent(hosted.url)
        rollouts = gk.Env("counter").rollouts(agent, protocol=SingleAgentTurn, output=output, progress=False)
    assert rollouts.rewards["reward"].tolist() == [1.0] * 5


def test_a_protocol_of_ones_own(output: Path) -> None:
    rollouts = gk.Env("counter").rollouts(
        gk.SimpleAgent(gk.Model.scripted(adder)), protocol=Twice, output=output, progress=False
    )
    assert rollouts.rewards["status"].tolist() == ["scored"] * 4 + ["failed"]
    assert rollouts.rewards["reward"].dropna().tolist() == [1.0] * 4
    assert rollouts.record(0)["turns"] == 2
    failure = rollouts.failures.iloc[0]
    assert (failure["failure_kind"], failure["message"], failure["terminal"]) == (
        "twice:too_long", "this one is too long", True,
    )  # fmt: skip


def test_a_resume_with_another_protocol_is_refused(output: Path) -> None:
    env, agent = gk.Env("counter"), gk.SimpleAgent(gk.Model.scripted(adder))
    env.rollouts(agent, protocol=SingleAgentTurn, output=output, limit=1, progress=False)
    with pytest.raises(ResumeMismatch, match="protocol"):
        env.rollouts(agent, protocol=Twice, output=output, limit=1, resume=True, progress=False)
    with pytest.raises(ResumeMismatch, match="protocol"):
        env.rollouts(agent, output=output, limit=1, resume=True, progress=False)


def test_a_task_that_the_environment_misses_something_in_is_named(output: Path) -> None:
    rows = [{**gk.Env("counter").rows[0], "expected_count": "many"}]
    env = gk.Env("counter", tasks=rows)
    with pytest.raises(InputError, match=r"task_input\.expected_count"):
        env.rollouts(gk.Agent(generator), protocol=SingleAgentTurn, output=output, progress=False)


def test_in_an_environment_elsewhere(output: Path) -> None:
    near = gk.Env("counter")
    with near.serve() as hosted:
        far = gk.Env(hosted.url, tasks=near.rows)
        rollouts = far.rollouts(gk.Agent(generator), protocol=SingleAgentTurn, output=output, progress=False)
    assert rollouts.rewards["reward"].mean() == 1.0
