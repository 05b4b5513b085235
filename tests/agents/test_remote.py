"""The Remote Agent against real services on loopback: every row of its contract, and every way a service can fail."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pydantic import ValidationError

from gymkit.agents.remote import RemoteAgent, RemoteAgentConfig
from gymkit.resources.counter import Counter
from gymkit.servers.hosting import serve
from gymkit.servers.route import Route
from gymkit.testing.agent import Fault, Received, ScriptedAgent, answer, call, outputs, respond

TOOLS = [tool.schema() for tool in Counter("counter").tools.values()]
ROW: dict[str, Any] = {
    "responses_create_params": {"input": [{"role": "user", "content": "add 2"}], "tools": TOOLS, "temperature": 0.5},
    "initial_count": 3,
    "expected_count": 5,
    "verifier_metadata": {"answer": "secret-answer"},
}


@pytest.fixture
def rollout() -> Iterator[Callable[..., dict[str, Any]]]:
    """Run one rollout (or several at once) of ROW against a service, and return the rows."""
    with ExitStack() as stack:

        def run(
            service: Any, row: dict[str, Any] = ROW, *, times: int = 1, together: bool = False, **knobs: Any
        ) -> Any:
            url = service if isinstance(service, str) else stack.enter_context(serve(service)).url
            return asyncio.run(_rollouts(url, row, times, together, knobs))

        yield run


async def _rollouts(url: str, row: dict[str, Any], times: int, together: bool, knobs: dict[str, Any]) -> Any:
    config = RemoteAgentConfig(agent_base_url=url, **knobs)
    agent = RemoteAgent("remote_agent", config, Route.to_app("counter", Counter("counter")))
    try:
        if together:
            return await asyncio.gather(*[agent.run(row) for _ in range(times)])
        rows = [await agent.run(row) for _ in range(times)]
        return rows[0] if times == 1 else rows
    finally:
        await agent.aclose()


def adder(params: dict[str, Any]) -> list[dict[str, Any]]:
    """Adds 2, then says so."""
    return [answer("done")] if outputs(params) else [call("increment_counter", count=2)]


def kinds(row: dict[str, Any]) -> list[str]:
    return [item["type"] for item in row["response"]["output"]]


class TestLoop:
    def test_an_ask_is_executed_appended_and_the_service_called_again(self, rollout: Callable[..., Any]) -> None:
        service = ScriptedAgent(adder)
        row = rollout(service)
        assert kinds(row) == ["function_call", "function_call_output", "message"]
        assert row["reward"] == 1.0
        assert row["response"]["output"][1] == {
            "type": "function_call_output",
            "call_id": "call_0",
            "output": '{"success":true}',
        }
        assert [len(each.params["input"]) for each in service.received] == [1, 3]
        assert row["gymkit"]["steps"] == 2
        assert row["gymkit"]["termination_reason"] == "message"
        assert [(each["item"], each["step"], each["error"]) for each in row["gymkit"]["calls"]] == [(1, 1, None)]

    def test_parallel_calls_run_in_order_on_one_session(self, rollout: Callable[..., Any]) -> None:
        def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            if outputs(params):
                return [answer(outputs(params)[1])]
            asks = [call("increment_counter", "a", count=1), call("get_counter_value", "b")]
            return [*asks, call("increment_counter", "c", count=1)]

        row = rollout(ScriptedAgent(brain))
        results = [item["output"] for item in row["response"]["output"] if item["type"] == "function_call_output"]
        assert results == ['{"success":true}', '{"count":4}', '{"success":true}']
        assert row["reward"] == 1.0

    def test_a_pair_is_the_services_own_record_and_is_not_executed(self, rollout: Callable[..., Any]) -> None:
        def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            own = {"type": "function_call_output", "call_id": "mine", "output": "42"}
            return [call("increment_counter", "mine", count=40), own, answer("done")]

        service = ScriptedAgent(brain)
        row = rollout(service)
        assert kinds(row) == ["function_call", "function_call_output", "message"]
        assert row["reward"] == 0.0, "the counter was not touched"
        assert row["gymkit"]["calls"] == []
        assert len(service.received) == 1

    def test_a_message_beside_an_ask_does_not_end_it(self, rollout: Callable[..., Any]) -> None:
        def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            return adder(params) if outputs(params) else [answer("let me see"), *adder(params)]

        row = rollout(ScriptedAgent(brain))
        assert kinds(row) == ["message", "function_call", "function_call_output", "message"]
        assert row["reward"] == 1.0

    def test_a_call_id_used_again_in_a_later_step_is_a_new_ask(self, rollout: Callable[..., Any]) -> None:
        def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            return [answer("done")] if len(outputs(params)) == 2 else [call("increment_counter", "same", count=1)]

        assert rollout(ScriptedAgent(brain))["reward"] == 1.0

    @pytest.mark.parametrize("ask_too", [False, True])
    def test_incomplete_details_end_it_and_what_there_is_gets_verified(
        self, rollout: Callable[..., Any], ask_too: bool
    ) -> None:
        def brain(params: dict[str, Any]) -> dict[str, Any]:
            output = adder(params) if ask_too else [answer("I ran out of")]
            return respond(output, incomplete_details={"reason": "max_output_tokens"})

        service = ScriptedAgent(brain)
        row = rollout(service)
        assert row["gymkit"]["termination_reason"] == "incomplete"
        assert (row["reward"], len(service.received)) == (0.0, 1)
        assert row["response"]["incomplete_details"] == {"reason": "max_output_tokens"}

    def test_neither_message_nor_ask_is_asked_again_until_max_steps(self, rollout: Callable[..., Any]) -> None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": []}
        service = ScriptedAgent(lambda params: [thought])
        row = rollout(service, max_steps=4)
        assert len(service.received) == 4
        assert (row["reward"], row["gymkit"]["termination_reason"], row["gymkit"]["steps"]) == (0.0, "max_steps", 4)

    def test_a_user_message_in_the_output_is_no_answer(self, rollout: Callable[..., Any]) -> None:
        sub_agent = {"type": "message", "role": "user", "content": "to my sub-agent"}
        row = rollout(ScriptedAgent(lambda params: [sub_agent]), max_steps=2)
        assert row["gymkit"]["termination_reason"] == "max_steps"

    def test_max_steps_cuts_after_the_calls_of_the_last_step_and_says_so(self, rollout: Callable[..., Any]) -> None:
        row = rollout(ScriptedAgent(lambda params: [call("increment_counter", count=1)]), max_steps=2)
        assert row["reward"] == 1.0, "both calls were executed, and the state is what is verified"
        assert row["gymkit"]["termination_reason"] == "max_steps"

    def test_a_string_input_arrives_as_a_list(self, rollout: Callable[..., Any]) -> None:
        service = ScriptedAgent(adder)
        row = {**ROW, "responses_create_params": {"input": "add 2"}}
        assert rollout(service, row)["reward"] == 1.0
        assert service.received[0].params["input"] == [{"role": "user", "content": "add 2", "type": "message"}]


class TestErrorsOfTheAgent:
    @pytest.mark.parametrize(
        ("name", "error"),
        [
            *((name, "undeclared") for name in ("verify", "seed_session", "close_session", "aggregate_metrics", "mcp")),
            *((name, "undeclared") for name in ("../verify", "verify?x=1", "verify#", "", "a b", "Verify/", "vérify")),
            ("no_such_tool", "undeclared"),
        ],
    )
    def test_a_name_that_is_no_tool_comes_back_as_an_unknown_tool(
        self, rollout: Callable[..., Any], name: str, error: str
    ) -> None:
        def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            return [answer("done")] if outputs(params) else [call(name, response="x")]

        service = ScriptedAgent(brain)
        row = rollout(service)
        [output] = outputs(service.received[1].params)
        assert "unknown tool" in output
        assert "reward" not in output
        assert row["gymkit"]["calls"][0]["error"] == error
        assert "_ng_failure_class" not in row

    @pytest.mark.parametrize("arguments", ["", "{", "[1]", "null", "count=2", '{"count": NaN}'])
    def test_malformed_arguments_come_back_as_that_calls_output(
        self, rollout: Callable[..., Any], arguments: str
    ) -> None:
        bad = {**call("increment_counter"), "arguments": arguments}
        service = ScriptedAgent(lambda params: [answer("done")] if outputs(params) else [bad])
        row = rollout(service)
        assert outputs(service.received[1].params)[0].startswith('{"error":"Invalid tool call arguments: ')
        assert row["gymkit"]["calls"][0]["error"] == "malformed"

    def test_arguments_that_the_tool_refuses_come_back_too(self, rollout: Callable[..., Any]) -> None:
        def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            return [answer("done")] if outputs(params) else [call("increment_counter", count="many")]

        service = ScriptedAgent(brain)
        row = rollout(service)
        assert "valid integer" in outputs(service.received[1].params)[0]
        assert row["gymkit"]["calls"][0]["error"] == "failed"


class TestWhatTheServiceSees:
    def test_params_verbatim_and_nothing_else(self, rollout: Callable[..., Any]) -> None:
        service = ScriptedAgent(adder)
        rollout(service)
        first, second = (each.params for each in service.received)
        assert first == ROW["responses_create_params"]
        assert {**second, "input": None} == {**first, "input": None}
        for each in service.received:
            assert each.path == "/v1/responses"
            assert "secret-answer" not in str(each)
            assert "Counter___" not in str(each.cookies), "the environment's cookie stays here"
            assert "authorization" not in each.headers

    def test_its_cookies_come_back_within_a_rollout_and_never_in_another(self, rollout: Callable[..., Any]) -> None:
        counter = iter(range(100))

        def mark(received: Received) -> str | None:
            return None if "who" in received.cookies else f"who=rollout-{next(counter)}; Path=/; HttpOnly"

        service = ScriptedAgent(adder, set_cookie=mark)
        rollout(service, times=3)
        assert [each.cookies.get("who") for each in service.received] == [
            *(None, "rollout-0"),
            *(None, "rollout-1"),
            *(None, "rollout-2"),
        ]

    def test_a_cookie_that_it_deletes_is_gone(self, rollout: Callable[..., Any]) -> None:
        lines = iter(["a=1", "a=; Max-Age=0", None])

        def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            return [answer("done")] if len(outputs(params)) == 2 else [call("increment_counter", count=1)]

        service = ScriptedAgent(brain, set_cookie=lambda received: next(lines))
        rollout(service)
        assert [each.cookies for each in service.received] == [{}, {"a": "1"}, {}]

    def test_concurrent_rollouts_do_not_mix(self, rollout: Callable[..., Any]) -> None:
        rows = rollout(ScriptedAgent(adder), times=40, together=True, concurrency=40)
        assert [row["reward"] for row in rows] == [1.0] * 40

    def test_proxies_of_the_environment_are_ignored(
        self, rollout: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
        assert rollout(ScriptedAgent(adder))["reward"] == 1.0

    def test_a_reused_result_row_starts_clean(self, rollout: Callable[..., Any]) -> None:
        stale = {
            **ROW,
            "reward": 0.25,
            "error": "old",
            "_ng_failure_class": "old",
            "_ng_no_persist": True,
            "gymkit": {},
        }
        row = rollout(ScriptedAgent(adder), {**stale, "response": respond([answer("old")]), "mask_sample": True})
        assert (row["reward"], row["mask_sample"]) == (1.0, False)
        assert not {"error", "_ng_failure_class", "_ng_no_persist"} & set(row)
        assert "old" not in str(row)


class TestFailures:
    def check(self, row: dict[str, Any], kind: str, *words: str, terminal: bool = False) -> None:
        assert row["_ng_failure_class"] == "remote_agent_error"
        assert row["failure_kind"] == kind
        assert row["reward"] == 0.0
        assert row.get("_ng_failure_terminal", False) is terminal
        assert row["response"]["id"] == "remote_agent_failure"
        for word in words:
            assert word in row["error"]
        assert row["expected_count"] == 5, "a failure row can be run again as a task"

    def test_a_service_that_is_down_is_tried_three_times(self, rollout: Callable[..., Any]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.check(rollout(url), "unreachable", url, "3 attempts")

    def test_a_service_that_comes_up_in_time_is_reached(self, rollout: Callable[..., Any]) -> None:
        attempts: list[int] = []

        async def flaky(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            attempts.append(1)
            if len(attempts) == 3:
                await reader.readuntil(b"\r\n\r\n")
                body = b'{"detail": "here now"}'
                writer.write(b"HTTP/1.1 418 x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
            writer.close()

        async def attempt() -> dict[str, Any]:
            server = await asyncio.start_server(flaky, "127.0.0.1", 0)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with server:
                return await _rollouts(url, ROW, 1, False, {})  # type: ignore[no-any-return]

        self.check(asyncio.run(attempt()), "http_status", "418", "here now")
        assert len(attempts) == 3

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_a_redirect_is_refused_with_its_location(self, rollout: Callable[..., Any], status: int) -> None:
        service = ScriptedAgent(lambda params: Fault(status, b"", {"location": "http://127.0.0.1:9/elsewhere"}))
        row = rollout(service)
        self.check(row, "redirect", "http://127.0.0.1:9/elsewhere", str(status), "agent_base_url")
        assert len(service.received) == 1

    @pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
    def test_a_status_is_named_and_not_retried(self, rollout: Callable[..., Any], status: int) -> None:
        service = ScriptedAgent(lambda params: Fault(status, b"because"))
        self.check(rollout(service), "http_status", str(status), "because", "/v1/responses")
        assert len(service.received) == 1

    def test_a_body_that_is_not_json(self, rollout: Callable[..., Any]) -> None:
        self.check(rollout(ScriptedAgent(lambda params: b"<html>hello")), "not_json", "<html>hello", "/v1/responses")

    @pytest.mark.parametrize(
        "reply",
        [
            b"[]",
            b"null",
            b"{}",
            {**respond([answer("x")]), "output": "x"},
            {**respond([answer("x")]), "usage": {"input_tokens": 1}},
            respond([{"type": "message"}]),
            respond([{"type": "function_call", "name": "x"}]),
        ],
        ids=str,
    )
    def test_an_invalid_object_is_terminal(self, rollout: Callable[..., Any], reply: Any) -> None:
        self.check(rollout(ScriptedAgent(lambda params: reply)), "invalid_response", "/v1/responses", terminal=True)

    def test_one_call_that_takes_too_long_names_its_knob(self, rollout: Callable[..., Any]) -> None:
        service = ScriptedAgent(lambda params: Fault(seconds=30))
        row = rollout(service, remote_responses_timeout_secs=0.2)
        self.check(row, "timeout", "remote_responses_timeout_secs=0.2", "/v1/responses")
        assert row["gymkit"]["termination_reason"] == "error"

    def test_a_rollout_that_takes_too_long_names_its_knob_and_is_marked(self, rollout: Callable[..., Any]) -> None:
        service = ScriptedAgent(
            lambda params: [call("get_counter_value")] if not outputs(params) else Fault(seconds=30)
        )
        row = rollout(service, run_timeout_secs=0.5)
        self.check(row, "timeout", "run_timeout_secs=0.5")
        assert row["gymkit"]["termination_reason"] == "deadline"
        partial = row["_ng_failure_partial_response"]["output"]
        assert [item["type"] for item in partial] == ["function_call", "function_call_output"]

    def test_the_rollouts_clock_starts_after_its_slot(self, rollout: Callable[..., Any]) -> None:
        async def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            await asyncio.sleep(0.2)
            return [answer("done")]

        rows = rollout(ScriptedAgent(brain), times=6, together=True, concurrency=1, run_timeout_secs=1.0)
        assert {row["gymkit"]["termination_reason"] for row in rows} == {"message"}

    def test_concurrency_is_kept(self, rollout: Callable[..., Any]) -> None:
        now, most = [0], [0]

        async def brain(params: dict[str, Any]) -> list[dict[str, Any]]:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(0.01)
            now[0] -= 1
            return [answer("done")]

        rollout(ScriptedAgent(brain), times=20, together=True, concurrency=3)
        assert most[0] == 3

    def test_a_task_that_cannot_be_seeded(self, rollout: Callable[..., Any]) -> None:
        service = ScriptedAgent(adder)
        row = rollout(service, {**ROW, "initial_count": "three"})
        self.check(row, "seed", "initial_count", "seeding failed")
        assert service.received == []

    def test_a_verifier_that_breaks(self) -> None:
        class Broken(Counter):
            def verify(self, state: Any, task: Any, response: Any) -> float:
                raise ZeroDivisionError("in the verifier")

        async def attempt(url: str) -> dict[str, Any]:
            server = Broken("counter")
            agent = RemoteAgent("r", RemoteAgentConfig(agent_base_url=url), Route.to_app("counter", server))
            row = await agent.run(ROW)
            await agent.aclose()
            return row

        with serve(ScriptedAgent(adder)) as hosted:
            row = asyncio.run(attempt(hosted.url))
        self.check(row, "verify", "in the verifier", "verification failed")

    def test_a_run_request_is_answered_200_whatever_happens(self) -> None:
        async def attempt() -> int:
            config = RemoteAgentConfig(agent_base_url="http://127.0.0.1:1")
            agent = RemoteAgent("r", config, Route.to_app("counter", Counter("counter")))
            reply = await Route.to_app("r", agent).post("/run", ROW)
            await agent.aclose()
            return reply.status

        assert asyncio.run(attempt()) == 200


class TestUsage:
    def test_usage_is_summed(self, rollout: Callable[..., Any]) -> None:
        row = rollout(ScriptedAgent(adder))
        assert row["response"]["usage"]["total_tokens"] == 4

    def test_missing_usage_is_allowed_and_warned_of_once(
        self, rollout: Callable[..., Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        service = ScriptedAgent(lambda params: respond(adder(params), usage=False))
        with caplog.at_level(logging.WARNING, "gymkit"):
            rows = rollout(service, times=3)
        assert all("usage" not in row["response"] and row["reward"] == 1.0 for row in rows)
        assert len([each for each in caplog.records if "no usage" in each.message]) == 1

    def test_a_part_of_the_usage_is_not_reported_as_the_sum(self, rollout: Callable[..., Any]) -> None:
        service = ScriptedAgent(lambda params: respond(adder(params), usage=bool(outputs(params))))
        assert "usage" not in rollout(service)["response"]


class TestKnobs:
    def test_defaults_are_the_seeds(self) -> None:
        config = RemoteAgentConfig(agent_base_url="http://localhost:9000/")
        assert config.model_dump() == {
            "agent_base_url": "http://localhost:9000",
            "concurrency": 32,
            "remote_responses_timeout_secs": 1800.0,
            "run_timeout_secs": 2100.0,
            "max_steps": None,
        }

    @pytest.mark.parametrize(
        "url",
        [
            *("ftp://host", "host:9000", "http://", "http://host?x=1", "http://host/#a", "http://host:port", ""),
            *("http://me:hunter2@host", "me:hunter2@host", "ftp://me:hunter2@host", "http://host?key=hunter2"),
        ],
    )
    def test_a_url_that_cannot_be_used_is_refused_and_a_secret_in_it_not_repeated(self, url: str) -> None:
        with pytest.raises(ValidationError) as caught:
            RemoteAgentConfig(agent_base_url=url)
        assert "agent_base_url" in str(caught.value)
        assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize(
        "knob",
        [
            {"concurrency": 0},
            {"max_steps": 0},
            {"run_timeout_secs": 0},
            {"remote_responses_timeout_secs": float("inf")},
        ],
    )
    def test_a_bound_that_is_none_is_refused(self, knob: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            RemoteAgentConfig(agent_base_url="http://localhost:9000", **knob)
