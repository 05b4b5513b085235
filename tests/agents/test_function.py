"""A Python function as an agent: every form of function and of answer, and what it may break."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from gymkit.agents.function import FunctionAgent, FunctionAgentConfig
from gymkit.resources.counter import Counter
from gymkit.servers.route import Route
from gymkit.testing.agent import answer, call, outputs, respond

TOOLS = [tool.schema() for tool in Counter("counter").tools.values()]
PARAMS = {"input": [{"role": "user", "content": "add 2"}], "tools": TOOLS}
ROW: dict[str, Any] = {
    "responses_create_params": PARAMS,
    "initial_count": 3,
    "expected_count": 5,
    "verifier_metadata": {"answer": "secret-answer"},
}
ADD = ("increment_counter", {"count": 2})


def run(function: Callable[..., Any], *, times: int = 1, **bounds: Any) -> Any:
    async def main() -> Any:
        agent = FunctionAgent("mine", FunctionAgentConfig(**bounds), function, Route.to_app("c", Counter("c")))
        try:
            rows = await asyncio.gather(*[agent.run(ROW) for _ in range(times)])
        finally:
            await agent.aclose()
        return rows[0] if times == 1 else rows

    return asyncio.run(main())


def kinds(row: dict[str, Any]) -> list[str]:
    return [item["type"] for item in row["response"]["output"]]


def plain(params: dict[str, Any]) -> Any:
    return "done" if outputs(params) else ADD


async def waiting(params: dict[str, Any]) -> Any:
    await asyncio.sleep(0)
    return "done" if outputs(params) else ADD


def generator(params: dict[str, Any]) -> Iterator[Any]:
    told = yield ADD
    assert told == {"success": True}, told
    return "done"


async def async_generator(params: dict[str, Any]) -> AsyncIterator[Any]:
    told = yield ADD
    assert told == {"success": True}, told
    yield "done"


class Callable_:
    def __call__(self, params: dict[str, Any]) -> Any:
        return plain(params)


class AsyncCallable:
    async def __call__(self, params: dict[str, Any]) -> Any:
        return plain(params)


class GeneratorCallable:
    def __call__(self, params: dict[str, Any]) -> Iterator[Any]:
        return (yield from generator(params))


@pytest.mark.parametrize(
    "function",
    [
        *(plain, waiting, generator, async_generator, Callable_(), AsyncCallable(), GeneratorCallable()),
        *(partial(plain), partial(generator), lambda params: plain(params), lambda params: generator(params)),
    ],
    ids=lambda function: getattr(function, "__name__", type(function).__name__),
)
def test_every_form_of_function_does_a_rollout(function: Callable[..., Any]) -> None:
    row = run(function)
    assert row.get("error") is None
    assert kinds(row) == ["function_call", "function_call_output", "message"]
    assert row["reward"] == 1.0
    assert row["gymkit"]["termination_reason"] == "message"
    assert row["gymkit"]["steps"] == 2


@pytest.mark.parametrize(
    "ask",
    [
        ADD,
        [ADD],
        {"name": "increment_counter", "arguments": {"count": 2}},
        {"type": "function_call", "name": "increment_counter", "arguments": {"count": 2}},
        call("increment_counter", count=2),
        [call("increment_counter", "a", count=1), ("increment_counter", {"count": 1})],
        respond([call("increment_counter", count=2)]),
        {"output": [call("increment_counter", count=2)]},
        ["I will add", ADD],
    ],
    ids=str,
)
def test_every_form_of_call(ask: Any) -> None:
    assert run(lambda params: "done" if outputs(params) else ask)["reward"] == 1.0


@pytest.mark.parametrize("said", ["5", answer("5"), [answer("5")], respond([answer("5")]), {"output": [answer("5")]}])
def test_every_form_of_answer(said: Any) -> None:
    row = run(lambda params: said)
    assert row["response"]["output"][0]["content"][0]["text"] == "5"


class TestGenerators:
    def test_a_list_of_calls_gives_a_list_of_outputs_in_its_order(self) -> None:
        got: list[Any] = []

        def agent(params: dict[str, Any]) -> Iterator[Any]:
            got.append((yield [("get_counter_value", {}), ADD, ("no_such_tool", {})]))
            got.append((yield [("get_counter_value", {})]))
            got.append((yield "get_counter_value", {}))

        row = run(agent)
        first, second, third = got
        assert first[:2] == [{"count": 3}, {"success": True}]
        assert "unknown tool" in first[2]["detail"]
        assert (second, third) == ([{"count": 5}], {"count": 5})
        assert row["reward"] == 1.0

    def test_a_remark_comes_before_what_follows_it(self) -> None:
        def agent(params: dict[str, Any]) -> Iterator[Any]:
            assert (yield "Let me see.") is None
            yield ADD
            yield "Nearly."
            return "Done."

        row = run(agent)
        assert kinds(row) == ["message", "function_call", "function_call_output", "message", "message"]
        assert row["gymkit"]["steps"] == 2

    def test_one_that_says_nothing_at_its_end_has_answered(self) -> None:
        def agent(params: dict[str, Any]) -> Iterator[Any]:
            yield ADD

        row = run(agent)
        assert (row["reward"], row["gymkit"]["termination_reason"]) == (1.0, "message")

    def test_each_rollout_has_one_of_its_own(self) -> None:
        def agent(params: dict[str, Any]) -> Iterator[Any]:
            for _ in range(2):
                yield "increment_counter", {"count": 1}
            return "done"

        assert [row["reward"] for row in run(agent, times=20)] == [1.0] * 20

    @pytest.mark.parametrize("kind", ["plain", "async"])
    def test_one_that_is_cut_short_cleans_up(self, kind: str) -> None:
        closed = threading.Event()

        def agent(params: dict[str, Any]) -> Iterator[Any]:
            try:
                while True:
                    yield ADD
            finally:
                closed.set()

        async def async_agent(params: dict[str, Any]) -> AsyncIterator[Any]:
            try:
                while True:
                    yield ADD
            finally:
                closed.set()

        row = run(agent if kind == "plain" else async_agent, max_steps=2)
        assert row["gymkit"]["termination_reason"] == "max_steps"
        assert closed.wait(5)


class TestFailures:
    def test_what_it_raises_is_a_failure_with_its_line(self) -> None:
        def agent(params: dict[str, Any]) -> str:
            raise KeyError("no such key")

        for function in (agent, partial(agent), lambda params: agent(params)):
            row = run(function)
            assert (row["_ng_failure_class"], row["failure_kind"]) == ("agent_run_error", "agent_error")
            assert "the function of mine raised KeyError: 'no such key'" in row["error"]
            assert f"test_function.py:{agent.__code__.co_firstlineno + 1}" in row["error"]
            assert row["expected_count"] == 5, "it can be run again as a task"

    def test_what_a_generator_raises_after_a_call_keeps_the_part_before(self) -> None:
        def agent(params: dict[str, Any]) -> Iterator[Any]:
            yield ADD
            raise ValueError("half-way")

        row = run(agent)
        assert "half-way" in row["error"]
        assert [item["type"] for item in row["_ng_failure_partial_response"]["output"]] == [
            "function_call",
            "function_call_output",
        ]

    @pytest.mark.parametrize(
        "given",
        [None, 5, b"x", {}, {"name": "x"}, [None], [("a", "b")], ("a", {"x": object()}), {"type": "message"},
         {"output": "x"}, {"output": [answer("x")], "usage": {"input_tokens": 1}}],
        ids=lambda given: type(given).__name__,
    )  # fmt: skip
    def test_what_is_no_step_is_refused(self, given: Any) -> None:
        row = run(lambda params: given)
        assert row["failure_kind"] == "invalid_response"
        assert row["_ng_failure_terminal"] is True
        assert "the function of mine gave something that is no step" in row["error"]

    def test_stop_iteration_out_of_a_function_is_told(self) -> None:
        row = run(lambda params: next(iter([])))
        assert "StopIteration" in row["error"]

    def test_one_that_never_returns_is_given_up_and_keeps_nobody_from_ending(self) -> None:
        free = threading.Event()
        row = run(lambda params: free.wait(30), run_timeout_secs=0.2)
        free.set()
        assert (row["failure_kind"], row["gymkit"]["termination_reason"]) == ("timeout", "deadline")
        assert "run_timeout_secs=0.2" in row["error"]

    def test_a_generator_that_hangs_in_its_thread_is_given_up(self) -> None:
        free = threading.Event()

        def agent(params: dict[str, Any]) -> Iterator[Any]:
            yield ADD
            free.wait(30)

        row = run(agent, run_timeout_secs=0.3)
        free.set()
        assert row["gymkit"]["termination_reason"] == "deadline"
        assert row["gymkit"]["steps"] == 1


def test_it_sees_the_request_and_nothing_else_and_may_spoil_its_copy() -> None:
    seen: list[dict[str, Any]] = []

    def agent(params: dict[str, Any]) -> Any:
        seen.append(deepcopy(params))
        params["input"][0]["content"] = "spoilt"
        params.clear()
        return "done" if len(seen) == 2 else ADD

    row = run(agent)
    assert seen[0] == PARAMS
    assert "secret-answer" not in str(seen)
    assert seen[1]["input"][0]["content"] == "add 2"
    assert row["responses_create_params"] == PARAMS
    assert row["reward"] == 1.0


def test_plain_functions_that_wait_do_not_wait_for_each_other() -> None:
    def slow(params: dict[str, Any]) -> str:
        time.sleep(0.1)
        return "done"

    started = time.perf_counter()
    run(slow, times=20, concurrency=20)
    assert time.perf_counter() - started < 1.5
    started = time.perf_counter()
    run(slow, times=4, concurrency=2)
    assert time.perf_counter() - started > 0.19
