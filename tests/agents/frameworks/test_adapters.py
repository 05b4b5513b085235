"""Every adapter keeps the same promises: with the real framework, on the scripted model, over real sockets."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from gymkit.environments.single_agent_turn import SingleAgentTurn, SingleAgentTurnConfig
from gymkit.servers.route import Route
from gymkit.testing.agent import call
from gymkit.testing.model import Fault
from tests.agents.frameworks.world import (
    BUILDERS,
    DIALECTS,
    World,
    kinds,
    last,
    left,
    nothing_left,
    outputs_of,
    require,
    row,
)


@pytest.fixture(params=sorted(BUILDERS))
def framework(request: pytest.FixtureRequest) -> str:
    require(request.param)
    return str(request.param)


def test_a_rollout_is_played_verified_and_captured(framework: str) -> None:
    script = [["I add.", call("increment_counter", "a", count=2)], last(framework)]
    world = World.of(framework, script, token_ids=True)
    result = world.run()
    assert result.get("error") is None
    assert result["reward"] == 1.0
    assert kinds(result) == ["message", "function_call", "function_call_output", "message"]
    first, asked, told, final = result["response"]["output"]
    assert first["content"][0]["text"] == "I add."
    assert (asked["name"], asked["arguments"], asked["call_id"]) == ("increment_counter", '{"count":2}', "a")
    assert (told["call_id"], told["output"]) == ("a", '{"success":true}')
    assert final["content"][0]["text"] == "done"
    assert result["gymkit"]["termination_reason"] == "message"
    assert [each["error"] for each in result["gymkit"]["calls"]] == [None]

    calls = world.calls()
    assert [(each["dialect"], each["status_code"]) for each in calls] == [(DIALECTS[framework], 200)] * 2
    assert "secret-answer" not in str(calls)
    assert all("generation_token_ids" in str(each) for each in calls)
    assert "Add." in str(calls[0]["request"])
    usage = result["response"]["usage"]
    counts = [each["response"]["usage"] for each in calls]
    assert usage["total_tokens"] == sum(each["total_tokens"] for each in counts) > 0


def test_what_a_tool_breaks_with_is_read_by_the_model_and_recorded(framework: str) -> None:
    script = [[call("explode", "a")], [call("increment_counter", "b", count=2)], last(framework)]
    world = World.of(framework, script)
    result = world.run()
    assert result["reward"] == 1.0
    assert [each["error"] for each in result["gymkit"]["calls"]] == ["failed", None]
    assert "boom" in outputs_of(result)[0]
    assert "boom" in str(world.calls()[1]["request"])


def test_several_calls_of_one_reply_all_run(framework: str) -> None:
    asks = [call("increment_counter", "a", count=1), call("increment_counter", "b", count=1)]
    result = World.of(framework, [asks, last(framework)]).run()
    assert result["reward"] == 1.0
    assert sorted(kinds(result)) == ["function_call"] * 2 + ["function_call_output"] * 2 + ["message"]
    if framework != "smolagents":  # whose threads may come one after the other
        assert result["gymkit"]["steps"] == 2


def test_the_agents_own_tool_is_a_pair_that_the_environment_never_sees(framework: str) -> None:
    script = [[call("own", "a", word="hi")], [call("increment_counter", "b", count=2)], last(framework)]
    result = World.of(framework, script).run()
    assert result["reward"] == 1.0
    assert outputs_of(result) == ["HI", '{"success":true}']
    assert len(result["gymkit"]["calls"]) == 1


def test_what_the_build_function_raises_is_a_failure_with_its_line(framework: str) -> None:
    def build(kit: Any) -> Any:
        raise KeyError("no such thing")

    result = World.of(framework, ["x"], build).run()
    assert (result["_ng_failure_class"], result["failure_kind"]) == ("agent_run_error", "agent_error")
    assert f"{framework} raised KeyError: 'no such thing'" in result["error"]
    assert f"test_adapters.py:{build.__code__.co_firstlineno + 1}" in result["error"]
    assert result["expected_count"] == 5, "it can be run again as a task"


def test_a_model_that_fails_is_a_failure_that_says_so_and_is_asked_once(framework: str) -> None:
    script = [[call("increment_counter", "a", count=2)], Fault(429, b"slow down"), last(framework)]
    world = World.of(framework, script)
    result = world.run()
    assert result["failure_kind"] == "http_status"
    assert "slow down" in result["error"]
    assert [each["status_code"] for each in world.calls()] == [200, 429]
    partial = result["_ng_failure_partial_response"]["output"]
    assert [item["type"] for item in partial] == ["function_call", "function_call_output"]


def test_the_bounds_are_the_rollouts_own(framework: str) -> None:
    def endless() -> Any:
        for number in range(1000):
            yield [call("increment_counter", f"c{number}", count=1)]

    result = World.of(framework, endless, bounds={"max_steps": 3}).run()
    assert (result["gymkit"]["steps"], result["gymkit"]["termination_reason"]) == (3, "max_steps")
    assert math.isfinite(result["reward"])


def test_a_rollout_that_takes_too_long_is_cut_and_leaves_nothing(framework: str) -> None:
    async def silent(params: dict[str, Any]) -> str:
        await asyncio.Event().wait()
        return ""

    result = World.of(framework, silent, bounds={"run_timeout_secs": 1.0}).run()
    assert (result["failure_kind"], result["gymkit"]["termination_reason"]) == ("timeout", "deadline")


@pytest.mark.parametrize("where", ["model", "tool"])
def test_a_cancelled_rollout_leaves_nothing_behind(framework: str, where: str) -> None:
    reached = asyncio.Event()

    async def script(params: dict[str, Any]) -> Any:
        if where == "tool":
            return [call("wait", "a")]
        reached.set()
        await asyncio.Event().wait()

    world = World.of(framework, script)

    async def main() -> None:
        agent = world.agent()
        rollout = asyncio.create_task(agent.run(row()))
        await asyncio.wait_for(world.room.waits.wait() if where == "tool" else reached.wait(), 20)
        assert left()
        rollout.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rollout
        await agent.aclose()
        await nothing_left()

    asyncio.run(main())
    if where == "model":
        assert [each["error_category"] for each in world.calls()] == ["cancelled"]


def test_rollouts_at_once_share_nothing(framework: str) -> None:
    seen: list[Any] = []
    build = BUILDERS[framework]

    def remember(kit: Any) -> Any:
        assert list(kit.folder.iterdir()) == []
        (kit.folder / "mine").write_text("x")
        seen.append(kit)
        return build(kit)

    again = "b" if framework == "openai-agents" else "a"  # the SDK takes a second use of an id for a repetition
    script = [[call("increment_counter", "a", count=1)], [call("increment_counter", again, count=1)], last(framework)]
    world = World.of(framework, script, remember)
    results = world.run(*[row(rollout) for rollout in range(6)])
    assert [result.get("error") for result in results] == [None] * 6
    assert [result["reward"] for result in results] == [1.0] * 6
    assert len({kit.folder for kit in seen}) == 6
    assert [len(world.calls(f"0-{rollout}")) for rollout in range(6)] == [3] * 6
    for result in results:
        ids = [item["call_id"] for item in result["response"]["output"] if item["type"] == "function_call"]
        assert len(ids) == len(set(ids)) == 2, "a model that uses an id twice does not mix outputs up"


def test_the_conversation_and_the_sampling_of_the_task_reach_the_model(framework: str) -> None:
    earlier = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first question"},
        {"role": "assistant", "content": "first answer"},
        {"type": "function_call", "call_id": "old", "name": "get_counter_value", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "old", "output": "earlier output"},
        {"role": "user", "content": "second question"},
    ]
    world = World.of(framework, [last(framework)])
    world.run(row(input=earlier, instructions="Mind the gap.", temperature=0.25, max_output_tokens=77))
    [each] = world.calls()
    told = str(each["request"])
    for text in ("Be brief.", "first question", "first answer", "earlier output", "second question", "Mind the gap."):
        assert text in told
    assert each["request"]["temperature"] == 0.25
    assert 77 in (each["request"].get("max_output_tokens"), each["request"].get("max_completion_tokens"))


def test_a_tool_that_nobody_offers_is_no_call_of_the_environment(framework: str) -> None:
    result = World.of(framework, [[call("no_such_tool", "a")], last(framework)]).run()
    if framework == "openai-agents":  # which ends the run
        assert result["failure_kind"] == "agent_error"
        assert "no_such_tool" in result["error"]
    else:
        assert result["gymkit"]["calls"] == []
        assert result["reward"] == 0.0
        assert "no_such_tool" in outputs_of(result)[0]


def test_one_turn_can_be_asked_for_without_a_rollout(framework: str) -> None:
    world = World.of(framework, [last(framework, "hello")])

    async def main() -> dict[str, Any]:
        agent = world.agent()
        try:
            reply = await Route.to_app("mine", agent).post("/ng-rollout/x/v1/responses", {"input": "hi"})
            return reply.expect_ok().json_object()
        finally:
            await agent.aclose()

    response = asyncio.run(main())
    assert response["output"][-1]["content"][0]["text"] == "hello"
    assert len(world.calls("x")) == 1


def test_an_environment_server_drives_it_through_a_session(framework: str) -> None:
    world = World.of(framework, [[call("increment_counter", "a", count=2)], last(framework)])
    task = {"responses_create_params": row()["responses_create_params"], "task_data": {"initial_count": 3}}
    task["task_data"] |= {"expected_count": 5}
    names = {"taskset": "room", "task_id": "4"}
    body = {
        "episode_id": {"rollout_id": "4-2", "attempt": 0},
        "task": {"task_id": names, "task_input": task},
    }

    async def main() -> dict[str, Any]:
        agent = world.agent()
        room = Route.to_app("room", world.room)
        config = SingleAgentTurnConfig(resources_tool_transports=["direct_http"])
        turn = SingleAgentTurn("turn", config, room, Route.to_app("mine", agent))
        try:
            reply = await Route.to_app("turn", turn).post("/run", body)
            assert len(agent.sessions) == len(world.room.sessions) == 0
            return reply.expect_ok().json_object()
        finally:
            await agent.aclose()
            await nothing_left()

    episode = asyncio.run(main())
    assert episode["result"]["reward"] == 1.0
    assert len(world.calls("4-2")) == 2
