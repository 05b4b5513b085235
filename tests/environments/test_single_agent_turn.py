"""The single agent turn, typed and for flat rows: counter, simple agent and a scripted model, calls counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.environments.single_agent_turn import SingleAgentTurn, SingleAgentTurnConfig, SingleAgentTurnTask
from gymkit.environments.single_agent_turn_legacy import SingleAgentTurnLegacy
from gymkit.resources.counter import Counter
from gymkit.servers.hosting import serve
from gymkit.servers.http import AsgiApp, Receive, Scope, Send
from gymkit.servers.route import Reply, Route
from gymkit.testing.agent import Fault, ScriptedAgent, answer, call, outputs
from gymkit.wire.episodes import EpisodeResponse

TOOLS = [tool.schema() for tool in Counter("counter").tools.values()]
PARAMS: dict[str, Any] = {"input": [{"role": "user", "content": "add 2"}], "tools": TOOLS}
FIELDS: dict[str, Any] = {"initial_count": 3, "expected_count": 5, "verifier_metadata": {"answer": "secret-answer"}}
TASK = {"responses_create_params": PARAMS, "task_data": FIELDS}
ROW = {"responses_create_params": PARAMS, **FIELDS, "_ng_task_index": 4, "_ng_rollout_index": 2}


def request(task: Mapping[str, Any] = TASK, rollout: str = "4-2", attempt: int = 0) -> dict[str, Any]:
    names = {"taskset": "counter", "task_id": "4"}
    return {
        "episode_id": {"rollout_id": rollout, "attempt": attempt},
        "task": {"task_id": names, "task_input": dict(task)},
    }


def adder(params: dict[str, Any]) -> Any:
    """Adds 2, then says so."""
    return [answer("done")] if outputs(params) else [call("increment_counter", count=2)]


class Tap:
    """A server on whose way a call may get a fault: ``faults`` says which, by path, and ``seen`` has the paths."""

    def __init__(self, app: AsgiApp) -> None:
        self.app = app
        self.seen: list[str] = []
        self.faults: dict[str, Fault | bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        self.seen.append(path)
        fault = next((fault for end, fault in self.faults.items() if path.endswith(end)), None)
        app = self.app if fault is None else ScriptedAgent(lambda params: fault)
        await app(scope, receive, send)


class World:
    """Everything that a turn needs, in one process."""

    def __init__(
        self, brain: Callable[[dict[str, Any]], Any] = adder, *, legacy: bool = False, agent: Any = None, **knobs: Any
    ) -> None:
        self.counter = Counter("counter")
        self.model = ScriptedAgent(brain)
        self.resources = Tap(self.counter)
        reach = Route.to_app("counter", self.resources)
        self.agent = SimpleAgent(
            "simple_agent", SimpleAgentConfig(**(agent or {})), Route.to_app("policy", self.model), neighbours=[reach]
        )
        self.player = Tap(self.agent)
        config = SingleAgentTurnConfig(**{"resources_tool_transports": ["direct_http"], **knobs})
        kind = SingleAgentTurnLegacy if legacy else SingleAgentTurn
        self.server = kind("turn", config, reach, Route.to_app("simple_agent", self.player))

    async def post(self, body: Any) -> Reply:
        return await Route.to_app("turn", self.server).post("/run", body)

    def run(self, body: Any | None = None) -> dict[str, Any]:
        return asyncio.run(self.post(request() if body is None else body)).expect_ok().json_object()

    @property
    def left(self) -> int:
        """Sessions left open anywhere."""
        return len(self.agent.sessions) + len(self.counter.sessions)


def kinds(response: dict[str, Any]) -> list[str]:
    return [item["type"] for item in response["output"]]


class TestTurn:
    def test_the_whole_protocol(self) -> None:
        world = World()
        reply = world.run()
        EpisodeResponse.model_validate(reply)
        result = reply["result"]
        assert reply["failure"] is None
        assert result["reward"] == 1.0
        assert kinds(result["response"]) == ["function_call", "function_call_output", "message"]
        assert world.resources.seen == [
            *("/ng-rollout/4-2/seed_session", "/increment_counter", "/ng-rollout/4-2/verify"),
            "/ng-rollout/4-2/close_session",
        ]
        assert world.player.seen == ["/v1/agent_sessions", "/ng-rollout/4-2/v1/responses", "/v1/agent_sessions/close"]
        assert world.left == 0

    def test_what_the_agent_saw_and_what_gymkit_keeps_are_on_the_result(self) -> None:
        result = World().run()["result"]
        observed = result["ng_agent_observations"]
        assert [record["kind"] for record in observed["records"]] == ["agent_invocation", "tool_call"]
        facts = result["gymkit"]
        assert (facts["steps"], facts["termination_reason"]) == (2, "message")
        assert [(each["item"], each["step"], each["error"]) for each in facts["calls"]] == [(1, 1, None)]

    def test_the_agent_sees_the_params_and_nothing_else_of_the_task(self) -> None:
        world = World()
        world.run(request({"responses_create_params": {**PARAMS, "temperature": 1}, "task_data": FIELDS}, attempt=1))
        first = world.model.received[0]
        assert first.params == {**PARAMS, "temperature": 1}
        assert first.path == "/ng-rollout/4-2-a1/v1/responses"
        assert "secret-answer" not in str(world.model.received)

    def test_over_sockets(self) -> None:
        async def episode(urls: Mapping[str, str]) -> dict[str, Any]:
            config = SingleAgentTurnConfig(resources_tool_transports=["direct_http"])
            routes = {name: Route.to_url(name, url) for name, url in urls.items()}
            server = SingleAgentTurn("turn", config, routes["counter"], routes["agent"])
            try:
                return (await Route.to_app("turn", server).post("/run", request())).json_object()
            finally:
                await server.aclose()

        counter, model = Counter("counter"), ScriptedAgent(adder)
        with ExitStack() as stack:
            urls = {"counter": stack.enter_context(serve(counter)).url, "model": stack.enter_context(serve(model)).url}
            agent = SimpleAgent("simple_agent", SimpleAgentConfig(), Route.to_url("model", urls["model"]))
            urls["agent"] = stack.enter_context(serve(agent)).url
            assert asyncio.run(episode(urls))["result"]["reward"] == 1.0
        assert (len(agent.sessions), len(counter.sessions), len(agent.reach)) == (0, 0, 0)

    def test_without_a_transport_the_agent_gets_no_tools(self) -> None:
        world = World(resources_tool_transports=[])
        failure = world.run()["failure"]
        assert (failure["stage"], failure["failure_kind"]) == ("agent", "http_status")
        assert "no direct_http access" in failure["failure_reason"]
        silent = World(lambda params: [answer("5")], resources_tool_transports=[]).run()
        assert silent["result"]["reward"] == 0.0

    def test_metrics_come_from_the_environment(self) -> None:
        rows = {"verify_responses": [{"reward": 1.0, "_ng_task_index": 0, "_ng_rollout_index": 0}]}
        world = World()
        reply = asyncio.run(Route.to_app("turn", world.server).post("/aggregate_metrics", rows))
        assert reply.json()["agent_metrics"]["mean/reward"] == 1.0
        assert world.resources.seen == ["/aggregate_metrics"]

    @pytest.mark.parametrize(
        ("task", "fields"),
        [
            ({"responses_create_params": PARAMS, "a": 1}, {"a": 1}),
            ({"responses_create_params": PARAMS, "a": 1, "task_data": {"b": 2}}, {"a": 1, "b": 2}),
            ({"responses_create_params": PARAMS, "a": 1, "task_data": {"a": 1}}, {"a": 1}),
            ({"responses_create_params": PARAMS}, {}),
        ],
    )
    def test_a_flat_task_is_gathered(self, task: dict[str, Any], fields: dict[str, Any]) -> None:
        assert SingleAgentTurnTask.model_validate(task).task_data == fields

    @pytest.mark.parametrize(
        ("task", "word"),
        [
            ({"responses_create_params": PARAMS, "a": 1, "task_data": {"a": 2}}, "differs"),
            ({"responses_create_params": PARAMS, "task_data": 3}, "task_data"),
            ({"responses_create_params": {"input": 3}, "task_data": {}}, "input"),
            ({"task_data": {}}, "responses_create_params"),
        ],
    )
    def test_a_task_of_another_shape_is_refused(self, task: dict[str, Any], word: str) -> None:
        reply = asyncio.run(World().post(request(task)))
        assert reply.status == 422
        assert word in str(reply.json()["detail"])


class TestStages:
    def failing(self, end: str, fault: Fault | bytes, *, of: str = "resources") -> tuple[World, dict[str, Any]]:
        world = World()
        tap: Tap = getattr(world, of)
        tap.faults[end] = fault
        return world, world.run()["failure"]

    @pytest.mark.parametrize(
        ("status", "terminal"), [(400, True), (408, False), (409, True), (422, True), (429, False), (500, False)]
    )
    @pytest.mark.parametrize(
        ("of", "end", "stage"),
        [
            ("resources", "/seed_session", "seed"),
            ("player", "/v1/agent_sessions", "agent"),
            ("player", "/v1/responses", "agent"),
            ("player", "/v1/agent_sessions/close", "cleanup"),
            ("resources", "/verify", "verification"),
        ],
    )
    def test_a_status_is_told_with_its_stage(self, of: str, end: str, stage: str, status: int, terminal: bool) -> None:
        world, failure = self.failing(end, Fault(status, b"because"), of=of)
        assert (failure["stage"], failure["terminal"]) == (stage, terminal)
        assert str(status) in failure["failure_reason"]
        assert "because" in failure["failure_reason"]
        assert ("partial_response" in failure) is (stage in ("cleanup", "verification"))
        if stage != "cleanup":  # where closing fails each time, the agent's session stays until it has lain idle
            assert world.left == 0

    @pytest.mark.parametrize(
        ("of", "end", "stage"),
        [
            ("resources", "/seed_session", "seed"),
            ("player", "/v1/agent_sessions", "agent"),
            ("player", "/v1/responses", "agent"),
            ("resources", "/verify", "verification"),
        ],
    )
    @pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}"])
    def test_an_answer_of_another_shape_is_terminal(self, of: str, end: str, stage: str, body: bytes) -> None:
        _, failure = self.failing(end, body, of=of)
        assert (failure["stage"], failure["terminal"]) == (stage, True)

    def test_a_seed_without_a_cookie_is_refused(self) -> None:
        _, failure = self.failing("/seed_session", b'{"resources_session_id": "x"}')
        assert "no session cookie" in failure["failure_reason"]

    def test_a_task_that_cannot_be_seeded_is_terminal(self) -> None:
        failure = World().run(request({"responses_create_params": PARAMS}))["failure"]
        assert (failure["stage"], failure["terminal"]) == ("seed", True)
        assert "initial_count" in failure["failure_reason"]

    def test_mcp_that_is_not_offered_is_terminal(self) -> None:
        failure = World(resources_tool_transports=["mcp"]).run()["failure"]
        assert (failure["stage"], failure["terminal"]) == ("seed", True)
        assert "MCP" in failure["failure_reason"]

    def test_a_model_that_fails_may_do_better_next_time(self) -> None:
        failure = World(lambda params: Fault(401, b"bad key")).run()["failure"]
        assert (failure["stage"], failure["terminal"]) == ("agent", False)
        assert "bad key" in failure["failure_reason"]

    def test_a_judge_that_failed_is_no_verdict(self) -> None:
        body = b'{"reward": 0.0, "mask_sample": true, "failure_kind": "judge_failed", "failure_reason": "judge down",'
        _, failure = self.failing("/verify", body + b'"_ng_failure_class": "judge_failed"}')
        assert (failure["stage"], failure["terminal"], failure["failure_kind"]) == (
            "verification", False, "judge_failed",
        )  # fmt: skip
        assert failure["failure_reason"] == "judge down"

    def test_a_room_that_cannot_be_closed_takes_back_no_verdict_and_is_tried_twice(self) -> None:
        world = World()
        world.resources.faults["/close_session"] = Fault(500)
        assert world.run()["result"]["reward"] == 1.0
        assert world.resources.seen.count("/ng-rollout/4-2/close_session") == 2

    def test_an_agent_that_cannot_use_the_grant_is_terminal(self) -> None:
        world = World(agent={"tool_accesses": [
            {"kind": "direct_http", "name": "another", "required": True, "base_url": "http://127.0.0.1:1"}
        ]})  # fmt: skip
        failure = world.run()["failure"]
        assert (failure["stage"], failure["terminal"]) == ("agent", True)


class TestFlatRows:
    def test_a_flat_row_is_answered_flat(self) -> None:
        world = World(legacy=True)
        row = world.run(ROW)
        assert (row["reward"], row["agent_ref"]) == (1.0, {"name": "simple_agent"})
        assert row["gymkit"]["steps"] == 2
        assert world.model.received[0].path == "/ng-rollout/4-2/v1/responses"
        assert not [key for key in row if key.startswith("_ng_")]

    def test_an_episode_is_answered_flat_too(self) -> None:
        assert World(legacy=True).run(request())["reward"] == 1.0

    def test_a_failure_is_a_row_for_the_sidecar(self) -> None:
        world = World(legacy=True)
        world.resources.faults["/verify"] = Fault(503, b"busy")
        row = world.run({**ROW, "_ng_attempt_index": 1})
        assert row["_ng_failure_class"] == "environment_server_failed"
        assert (row["_ng_failure_stage"], row["_ng_failure_terminal"]) == ("verification", False)
        assert "busy" in row["_ng_failure_message"]
        assert kinds(row["_ng_failure_partial_response"])[-1] == "message"
        assert row["agent_ref"] == {"name": "simple_agent"}
        assert "reward" not in row

    @pytest.mark.parametrize("source", ["counter", "simple_agent", "turn"])
    def test_a_row_of_one_of_its_servers_is_taken(self, source: str) -> None:
        row = {**ROW, "task_source": source, "agent_ref": {"name": "simple_agent"}}
        assert World(legacy=True).run(row)["reward"] == 1.0

    @pytest.mark.parametrize("fields", [{"task_source": "weather"}, {"agent_ref": {"name": "other"}}, {"agent_ref": 1}])
    def test_a_row_for_other_servers_is_refused(self, fields: dict[str, Any]) -> None:
        reply = asyncio.run(World(legacy=True).post({**ROW, **fields}))
        assert (reply.status, reply.json()["kind"]) == (500, "misrouted")

    def test_a_row_of_no_plan_gets_a_name_of_its_own(self) -> None:
        world = World(legacy=True)
        assert world.run({"responses_create_params": PARAMS, **FIELDS, "id": 3, "task_id": "mine"})["reward"] == 1.0
        assert len(world.model.received[0].path) > len("/ng-rollout//v1/responses") + 16

    @pytest.mark.parametrize("row", [{**FIELDS}, {"responses_create_params": PARAMS, **FIELDS}])
    def test_a_row_that_is_no_task_is_refused(self, row: dict[str, Any]) -> None:
        assert asyncio.run(World(legacy=True).post(row)).status == 422
