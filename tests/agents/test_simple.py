"""The simple agent on its three ways in (/run, /v1/responses, agent sessions), against a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.resources.counter import Counter
from gymkit.servers.hosting import serve
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.testing.agent import Fault, Received, ScriptedAgent, answer, call, outputs, respond

TOOLS = [tool.schema() for tool in Counter("counter").tools.values()]
PARAMS: dict[str, Any] = {
    "input": [{"role": "user", "content": "add 2"}],
    "tools": TOOLS,
    "temperature": 0.5,
    "max_output_tokens": 100,
}
ROW: dict[str, Any] = {
    "responses_create_params": PARAMS,
    "initial_count": 3,
    "expected_count": 5,
    "verifier_metadata": {"answer": "secret-answer"},
}
EPISODE = {"rollout_id": "0-0", "attempt": 0}
SEED: dict[str, Any] = {
    "agent_session_id": "s1",
    "episode_id": EPISODE,
    "task_id": {"taskset": "counter", "task_id": "0"},
}
CLOSE = {"agent_session_id": "s1", "episode_id": EPISODE}
GRANT = {"kind": "direct_http", "name": "counter.direct_http", "required": True, "base_url": "app://counter"}


def adder(params: dict[str, Any]) -> list[dict[str, Any]]:
    """Adds 2, then says so."""
    return [answer("done")] if outputs(params) else [call("increment_counter", count=2)]


class World:
    """A scripted model, a simple agent and a counter in one process, and a caller with a cookie jar."""

    def __init__(self, brain: Callable[[dict[str, Any]], Any] = adder, *, marks: Any = None, **knobs: Any) -> None:
        self.model = ScriptedAgent(brain, set_cookie=marks)
        self.counter = Counter("counter")
        self.environment = Route.to_app("counter", self.counter)
        model = Route.to_app("policy", self.model)
        self.agent = SimpleAgent("simple_agent", SimpleAgentConfig(**knobs), model, self.environment)
        self.route = Route.to_app("simple_agent", self.agent)
        self.jar = CookieJar()

    async def post(self, path: str, payload: Any) -> Reply:
        reply = await self.route.post(path, payload, cookies=self.jar)
        self.jar.take(reply)
        return reply

    async def grant(self) -> dict[str, Any]:
        """Seed the counter, and what gives an agent access to it."""
        reply = await self.environment.post("/seed_session", ROW)
        return {**GRANT, "cookies": reply.expect_ok().cookies()}

    async def count(self, cookies: dict[str, str]) -> Any:
        return (await self.environment.post("/get_counter_value", {}, cookies=cookies)).json()["count"]


def run(world: World, row: dict[str, Any] = ROW) -> Reply:
    return asyncio.run(world.post("/run", row))


def kinds(response: dict[str, Any]) -> list[str]:
    return [item["type"] for item in response["output"]]


class TestRun:
    def test_a_rollout_is_seeded_looped_and_verified(self) -> None:
        world = World()
        row = run(world).expect_ok().json()
        assert row["reward"] == 1.0
        assert kinds(row["response"]) == ["function_call", "function_call_output", "message"]
        assert row["response"]["usage"]["total_tokens"] == 4, "the usage of both calls"
        assert row["gymkit"]["steps"] == 2
        assert row["gymkit"]["termination_reason"] == "message"
        assert [(each["item"], each["step"], each["error"]) for each in row["gymkit"]["calls"]] == [(1, 1, None)]

    def test_the_model_sees_the_params_and_what_grew_and_nothing_else(self) -> None:
        world = World()
        run(world, {**ROW, "_ng_task_index": 7, "_ng_rollout_index": 1, "_ng_attempt_index": 2})
        first, second = world.model.received
        assert first.params == PARAMS
        assert {**second.params, "input": None} == {**PARAMS, "input": None}
        assert len(second.params["input"]) == 3
        assert "secret-answer" not in str(world.model.received)
        assert {each.path for each in world.model.received} == {"/ng-rollout/7-1-a2/v1/responses"}

    def test_text_becomes_one_user_message(self) -> None:
        world = World()
        run(world, {**ROW, "responses_create_params": {"input": "add 2", "tools": TOOLS}})
        assert world.model.received[0].params["input"] == [{"role": "user", "content": "add 2", "type": "message"}]

    def test_a_row_without_indices_is_not_correlated(self) -> None:
        world = World()
        run(world)
        assert world.model.received[0].path == "/v1/responses"

    def test_tokens_for_training_are_asked_for(self) -> None:
        world = World(token_id_capture=True)
        run(world, {**ROW, "_ng_rollout_id": "mine"})
        assert world.model.received[0].path == "/ng-rollout/mine/training-token-capture/v1/responses"

    def test_the_models_cookies_stay_with_the_model(self) -> None:
        world = World(marks=lambda received: None if "who" in received.cookies else "who=me; path=/")
        run(world)
        assert [each.cookies for each in world.model.received] == [{}, {"who": "me"}]

    @pytest.mark.parametrize("fault", [Fault(401, b"bad key"), Fault(503, b"busy"), b"<html>", b"[]", respond("x")])  # type: ignore[arg-type]
    def test_a_model_that_fails_is_an_error_with_its_kind(self, fault: Any) -> None:
        reply = run(World(lambda params: fault))
        assert reply.status == 500
        assert reply.json()["kind"] in ("http_status", "not_json", "invalid_response")
        assert "app://policy" in reply.json()["detail"]

    def test_a_task_that_cannot_be_seeded_is_an_error(self) -> None:
        reply = run(World(), {**ROW, "initial_count": "three"})
        assert (reply.status, reply.json()["kind"]) == (500, "seed")
        assert "initial_count" in reply.json()["detail"]

    def test_a_verifier_that_breaks_is_an_error(self) -> None:
        class Broken(Counter):
            def verify(self, state: Any, task: Any, response: Any) -> float:
                raise ZeroDivisionError("in the verifier")

        world = World()
        world.agent.resources = Route.to_app("broken", Broken("broken"))
        reply = run(world)
        assert (reply.status, reply.json()["kind"]) == (500, "verify")

    def test_an_invalid_request_is_refused(self) -> None:
        assert run(World(), {"responses_create_params": {"input": 3}}).status == 422

    def test_verification_can_be_skipped(self) -> None:
        row = run(World(skip_verification=True, skip_verification_reward=0.5)).json()
        assert (row["reward"], row["verification_skipped"]) == (0.5, True)
        assert row["expected_count"] == 5
        assert kinds(row["response"])[-1] == "message"


class TestLoop:
    def test_calls_run_one_after_the_other_in_order(self) -> None:
        def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            if outputs(params):
                return [answer("done")]
            asks = [call("increment_counter", "a", count=1), call("get_counter_value", "b")]
            return [*asks, call("increment_counter", "c", count=1)]

        world = World(brain)
        row = run(world).json()
        assert outputs(world.model.received[1].params) == ['{"success":true}', '{"count":4}', '{"success":true}']
        assert row["reward"] == 1.0

    @pytest.mark.parametrize(
        ("ask", "error", "told"),
        [
            (call("no_such_tool"), "undeclared", "unknown tool"),
            (call("verify"), "undeclared", "unknown tool"),
            (call("increment_counter", count="many"), "failed", "valid integer"),
            ({**call("increment_counter"), "arguments": "{count"}, "malformed", "Invalid tool call arguments: "),
            ({**call("increment_counter"), "arguments": "[1]"}, "malformed", "Invalid tool call arguments: "),
        ],
        ids=["unknown", "a route", "refused", "no JSON", "no object"],
    )
    def test_the_model_reads_what_went_wrong(self, ask: dict[str, Any], error: str, told: str) -> None:
        world = World(lambda params: [answer("done")] if outputs(params) else [ask])
        row = run(world).expect_ok().json()
        assert told in outputs(world.model.received[1].params)[0]
        assert [each["error"] for each in row["gymkit"]["calls"]] == [error]
        assert row["reward"] == 0.0

    def test_max_steps_counts_calls_of_the_model_and_the_last_ones_tools_are_run(self) -> None:
        world = World(lambda params: [call("increment_counter", f"c{len(outputs(params))}", count=1)], max_steps=2)
        row = run(world).json()
        assert len(world.model.received) == 2
        assert kinds(row["response"]) == ["function_call", "function_call_output"] * 2
        assert row["reward"] == 1.0
        assert row["gymkit"]["termination_reason"] == "max_steps"

    def test_an_incomplete_reply_ends_it_with_its_calls_left_alone(self) -> None:
        reply = respond([call("increment_counter", count=2)], incomplete_details={"reason": "max_output_tokens"})
        row = run(World(lambda params: reply)).json()
        assert kinds(row["response"]) == ["function_call"]
        assert row["gymkit"]["termination_reason"] == "incomplete"
        assert row["reward"] == 0.0

    @pytest.mark.parametrize(
        ("output", "reason"),
        [
            ([], "empty_output"),
            ([{"type": "reasoning", "id": "rs_1", "summary": []}], "incomplete_reasoning"),
        ],
    )
    def test_a_reply_that_says_nothing_ends_it_marked(self, output: list[Any], reason: str) -> None:
        world = World(lambda params: respond(output, metadata={"of": "the model"}))
        response = run(world).json()["response"]
        assert len(world.model.received) == 1
        assert response["status"] == "incomplete"
        assert response["metadata"]["ng_termination_reason"] == reason
        assert response["metadata"]["ng_termination_message"]
        assert response["metadata"]["of"] == "the model"

    def test_the_environments_cookies_follow_the_tools(self) -> None:
        world = World()
        assert run(world).json()["reward"] == 1.0
        assert len(world.counter.sessions) == 1, "one session from the seed to the verdict"


class TestOneTurn:
    def test_a_turn_uses_the_callers_session_of_the_environment_and_hands_the_cookies_back(self) -> None:
        async def turn(world: World) -> tuple[dict[str, Any], Any]:
            world.jar.take((await world.environment.post("/seed_session", ROW)).expect_ok())
            reply = (await world.post("/v1/responses", PARAMS)).expect_ok()
            assert {"Counter___counter", "who"} <= set(reply.cookies())
            return reply.json(), await world.count({"Counter___counter": world.jar["Counter___counter"]})

        response, count = asyncio.run(turn(World(marks=lambda received: "who=me")))
        assert kinds(response) == ["function_call", "function_call_output", "message"]
        assert response["usage"]["total_tokens"] == 4
        assert count == 5

    @pytest.mark.parametrize("prefix", ["/ng-rollout/4-2", "/ng-rollout/4-2/training-token-capture"])
    def test_the_prefixes_go_on_to_the_model(self, prefix: str) -> None:
        world = World(lambda params: [answer("hi")])
        assert asyncio.run(world.post(f"{prefix}/v1/responses", PARAMS)).status == 200
        assert world.model.received[0].path == f"{prefix}/v1/responses"

    def test_over_sockets(self) -> None:
        async def rollout(url: str, model: str) -> Any:
            config = SimpleAgentConfig()
            agent = SimpleAgent("a", config, Route.to_url("m", model), Route.to_url("counter", url))
            try:
                return (await Route.to_app("a", agent).post("/run", {**ROW, "_ng_rollout_id": "x"})).json()
            finally:
                await agent.aclose()

        with serve(Counter("counter")) as counter, serve(ScriptedAgent(adder)) as model:
            assert asyncio.run(rollout(counter.url, model.url))["reward"] == 1.0

    def test_an_agent_without_tools_of_its_own_takes_part_in_sessions_only(self) -> None:
        world = World(execute_tools=False)
        for path, body in (("/v1/responses", PARAMS), ("/run", ROW)):
            reply = asyncio.run(world.post(path, body))
            assert (reply.status, reply.json()["kind"]) == (500, "needs_session")


class TestSession:
    def test_a_session_runs_granted_tools_and_reports_at_its_close(self) -> None:
        async def episode(world: World) -> tuple[Any, Any, Any]:
            grant = await world.grant()
            seeded = await world.post("/v1/agent_sessions", {**SEED, "tool_accesses": [grant]})
            assert seeded.expect_ok().json() == {"agent_session_id": "s1"}
            response = (await world.post("/ng-rollout/0-0/v1/responses", PARAMS)).expect_ok().json()
            closed = (await world.post("/v1/agent_sessions/close", CLOSE)).expect_ok().json()
            return response, closed, await world.count(closed["resources_cookies"])

        response, closed, count = asyncio.run(episode(World()))
        assert kinds(response) == ["function_call", "function_call_output", "message"]
        assert count == 5
        assert set(closed) == {"agent_session_id", "agent_observations", "resources_cookies"}
        invocation, tool = closed["agent_observations"]["records"]
        assert invocation["invocation_id"] == "root"
        assert invocation["status"] == "completed"
        assert (
            invocation["model_calls"]
            == [{"model_ref": {"type": "responses_api_models", "name": "policy"}, "response_id": "resp_scripted"}] * 2
        )
        assert [item["type"] for item in invocation["conversation"][1:]] == kinds(response)
        assert (tool["tool_call_id"], tool["tool_name"], tool["status"]) == (
            "call_0", "increment_counter", "completed",
        )  # fmt: skip
        assert tool["completed_at"] >= tool["started_at"]

    def test_only_the_models_cookies_come_back(self) -> None:
        async def episode(world: World) -> set[str]:
            await world.post("/v1/agent_sessions", {**SEED, "tool_accesses": [await world.grant()]})
            return set((await world.post("/v1/responses", PARAMS)).expect_ok().cookies())

        assert asyncio.run(episode(World(marks=lambda received: "who=me"))) == {"who", "SimpleAgent___simple_agent"}

    def test_each_activation_is_an_invocation_of_its_own(self) -> None:
        async def episode(world: World) -> list[str]:
            await world.post("/v1/agent_sessions", SEED)
            for _ in range(3):
                (await world.post("/v1/responses", PARAMS)).expect_ok()
            closed = (await world.post("/v1/agent_sessions/close", CLOSE)).json()
            return [record["invocation_id"] for record in closed["agent_observations"]["records"]]

        assert asyncio.run(episode(World(lambda params: [answer("hi")]))) == ["root", "activation-2", "activation-3"]

    def test_calls_stay_unresolved_where_tools_are_not_executed(self) -> None:
        async def episode(world: World) -> Any:
            await world.post("/v1/agent_sessions", {**SEED, "tool_accesses": [await world.grant()]})
            return (await world.post("/v1/responses", PARAMS)).expect_ok().json()

        world = World(execute_tools=False)
        assert kinds(asyncio.run(episode(world))) == ["function_call"]
        assert len(world.model.received) == 1

    def test_a_call_without_a_grant_is_an_error_and_the_environment_is_left_alone(self) -> None:
        async def episode(world: World) -> tuple[Reply, Any]:
            await world.post("/v1/agent_sessions", SEED)
            failed = await world.post("/v1/responses", PARAMS)
            return failed, (await world.post("/v1/agent_sessions/close", CLOSE)).json()

        world = World()
        failed, closed = asyncio.run(episode(world))
        assert (failed.status, failed.json()["kind"]) == (500, "no_tool_access")
        assert len(world.counter.sessions) == 0
        assert "resources_cookies" not in closed, "the environment server goes on with its own"
        assert closed["agent_observations"]["records"][0]["status"] == "failed"

    @pytest.mark.parametrize(
        ("fields", "word"),
        [
            (
                {"sandbox_access": {"connection": {"provider_config_ref": "p", "descriptor": {}}, "workdir": "/w"}},
                "sandbox",
            ),
            (
                {
                    "tool_accesses": [
                        {"kind": "mcp", "name": "m", "required": True, "connection": {"url": "http://127.0.0.1:1/mcp"}}
                    ]
                },
                "MCP",
            ),
            ({"tool_accesses": [GRANT, {**GRANT, "name": "another"}]}, "another"),
            ({"tool_accesses": [{**GRANT, "base_url": "app://elsewhere"}]}, "elsewhere"),
            ({"tool_accesses": [GRANT, GRANT]}, "unique"),
            ({"tool_accesses": [{**GRANT, "base_url": "counter"}]}, "absolute"),
        ],
    )
    def test_what_it_cannot_use_is_refused_at_the_seed(self, fields: dict[str, Any], word: str) -> None:
        reply = asyncio.run(World().post("/v1/agent_sessions", {**SEED, **fields}))
        assert reply.status == 422
        assert word in str(reply.json()["detail"])

    def test_an_mcp_grant_that_is_not_required_is_let_be(self) -> None:
        mcp = {"kind": "mcp", "name": "m", "required": False, "connection": {"url": "http://127.0.0.1:1/mcp"}}
        assert asyncio.run(World().post("/v1/agent_sessions", {**SEED, "tool_accesses": [mcp]})).status == 200

    def test_a_grant_over_a_socket_sends_its_headers_and_lets_go_of_its_connections(self) -> None:
        received: list[Received] = []

        async def episode(url: str) -> World:
            world = World()
            grant = {**GRANT, "base_url": url, "cookies": {"who": "me"}, "headers": {"X-Token": "t"}}
            await world.post("/v1/agent_sessions", {**SEED, "tool_accesses": [grant]})
            (await world.post("/v1/responses", PARAMS)).expect_ok()
            assert len(world.agent.reach) == 1
            await world.post("/v1/agent_sessions/close", CLOSE)
            return world

        tools = ScriptedAgent(lambda params: {"success": True})
        with serve(tools) as hosted:
            world = asyncio.run(episode(hosted.url))
        received = tools.received
        assert (received[0].path, received[0].cookies, received[0].headers["x-token"]) == (
            "/increment_counter", {"who": "me"}, "t",
        )  # fmt: skip
        assert len(world.agent.reach) == 0

    def test_configured_accesses_hold_for_every_session_unless_its_seed_says_otherwise(self) -> None:
        async def episode(world: World) -> Any:
            await world.post("/v1/agent_sessions", {**SEED, "tool_accesses": [await world.grant()]})
            (await world.post("/v1/responses", PARAMS)).expect_ok()
            return await world.count((await world.post("/v1/agent_sessions/close", CLOSE)).json()["resources_cookies"])

        elsewhere = {**GRANT, "base_url": "http://127.0.0.1:1"}
        assert asyncio.run(episode(World(tool_accesses=[elsewhere]))) == 5
