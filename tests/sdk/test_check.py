"""The check against real services on loopback: a good one passes, each bad one fails at its rule and no other."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer, ThreadingHTTPServer
from typing import Any, Protocol

import pytest

from gymkit import Env, GymkitError, RemoteAgent
from gymkit.errors import ConfigError
from gymkit.resources.counter import Counter
from gymkit.sdk.check import RULES, Report
from gymkit.sdk.check.finding import Finding
from gymkit.servers.hosting import serve
from gymkit.testing.agent import Fault, ScriptedAgent, answer, call, outputs
from gymkit.testing.counter_service import Handler
from gymkit.testing.counter_service import respond as count
from tests.sdk import services

NO_COOKIES = {"cookies": "skip", "without cookies": "skip"}
TASKS = Env("counter").rows


class Check(Protocol):
    def __call__(self, app: Any, *, env: Env | None = ..., concurrency: int = ..., **bounds: float) -> Report: ...


@pytest.fixture(scope="module")
def check() -> Iterator[Check]:
    """Check one app after the other, all at one address."""
    served: list[Any] = [None]

    async def current(scope: Any, receive: Any, send: Any) -> None:
        await served[0](scope, receive, send)

    with serve(current) as hosted:

        def run(app: Any, *, env: Env | None = None, concurrency: int = 32, **bounds: float) -> Report:
            served[0] = app
            return RemoteAgent(hosted.url, concurrency=concurrency).check(env, **bounds)

        yield run


def results(report: Report) -> dict[str, str]:
    return {finding.rule: finding.result for finding in report.findings}


def row(report: Report, rule: str) -> Finding:
    return next(finding for finding in report.findings if finding.rule == rule)


def outcome(report: Report, result: str) -> list[str]:
    return [rule for rule, found in results(report).items() if found == result]


@contextmanager
def plain_http(server: type[HTTPServer], protocol: str) -> Iterator[str]:
    """The counter service on the standard library's server."""
    handler = type("Versioned", (Handler,), {"protocol_version": protocol})
    with server(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


class TestGoodServices:
    def test_a_stateless_service_passes_all(self, check: Check) -> None:
        report = check(services.good())
        assert results(report) == {rule.name: NO_COOKIES.get(rule.name, "pass") for rule in RULES}
        assert report.ok
        assert "after 4, 4, 4 calls; rewards 1, 1, 1" in row(report, "finishes").came

    def test_a_service_with_cookies_passes_all(self, check: Check) -> None:
        report = check(services.stateful())
        assert set(results(report).values()) == {"pass"}
        assert "sid" in row(report, "cookies").came

    @pytest.mark.parametrize(
        ("server", "protocol"), [(ThreadingHTTPServer, "HTTP/1.1"), (HTTPServer, "HTTP/1.0")], ids=["threads", "single"]
    )
    def test_a_service_on_plain_http_server_passes_all(self, server: type[HTTPServer], protocol: str) -> None:
        with plain_http(server, protocol) as url:
            report = RemoteAgent(url).check()
        assert outcome(report, "fail") + outcome(report, "warn") == []

    def test_a_service_that_runs_tools_of_its_own_passes(self, check: Check) -> None:
        own = {"type": "function_call_output", "call_id": "own", "output": "42"}
        report = check(services.adding(call("my_search", "own"), own)())
        assert report.ok
        assert "pairs of its own" in row(report, "pairs").came

    def test_the_tasks_are_those_of_the_environment(self, check: Check) -> None:
        def brain(params: dict[str, Any]) -> Any:
            return [answer("cold")] if outputs(params) else [call("get_weather", city="Oslo")]

        service = ScriptedAgent(brain)
        report = check(service, env=Env("weather"))
        assert report.ok
        assert "coat in Oslo" in str(service.received[0].params)
        assert report.environment == "weather"

    def test_a_service_that_needs_no_tool_is_not_asked_to_survive_one(self, check: Check) -> None:
        report = check(ScriptedAgent(lambda params: [answer("no")]))
        assert report.ok
        for rule in ("declared tools", "arguments", "unknown tool", "failing tool"):
            assert (row(report, rule).result, row(report, rule).came) == ("skip", "it asked for no tool")

    def test_an_instant_service_takes_under_3_seconds_and_100_calls(self, check: Check) -> None:
        report = check(services.good())
        assert report.seconds < 3
        assert 50 < report.calls < 100


BAD: dict[str, list[tuple[services.Service, str]]] = {
    "no redirect": [
        (lambda: ScriptedAgent(lambda params: Fault(307, b"", {"location": "http://127.0.0.1:9/there"})), "9/there"),
    ],
    "status": [
        (lambda: ScriptedAgent(lambda params: Fault(500, b"the brain fell over")), "the brain fell over"),
        (lambda: ScriptedAgent(lambda params: Fault(404, b"no such path")), "404"),
    ],
    "valid object": [
        (services.changed(output="x"), "output: must be a list"),
        (services.changed(object="chat.completion"), "chat.completion"),
        (lambda: ScriptedAgent(lambda params: b"<html>hello"), "<html>hello"),
    ],
    "usage": [(services.changed(usage={"input_tokens": 1}), "usage.output_tokens: is missing")],
    "pairs": [
        (services.adding({"type": "function_call_output", "call_id": "lost", "output": "1"}), "'lost'"),
        (
            services.adding(*[{"type": "function_call_output", "call_id": "b", "output": "1"}] * 2, call("x", "b")),
            "2 outputs",
        ),
        (
            services.adding(
                *[call("x", "c"), call("x", "c"), {"type": "function_call_output", "call_id": "c", "output": "1"}]
            ),
            "2 calls",
        ),
    ],
    "declared tools": [(services.asking_first(call("search_the_web", "odd", q="x")), "search_the_web")],
    "arguments": [
        (services.asking_first({**call("increment_counter", "odd"), "arguments": "count=1"}), "count=1"),
        (services.asking_first({**call("increment_counter", "odd"), "arguments": "[1]"}), "[1]"),
    ],
    "called again": [(services.failing_if(lambda params: bool(outputs(params))), "500")],
    "finishes": [(services.endless, "16 calls")],
    "cookies": [(services.refusing_its_cookie, "bad signature")],
    "repeated request": [(services.forgetting_at_the_end(lambda params: Fault(410, b"gone")), "410")],
    "clean start": [(services.counting_steps_globally, "no tool; reward 0"), (services.broken_after_one, "500")],
    "rollouts apart": [
        (services.last_request_wins, "went otherwise"),
        (services.one_history_for_all, "holds the word"),
    ],
    "parallel calls": [(services.refusing_two_at_once, "busy")],
    "unknown tool": [(services.failing_if(lambda params: "unknown tool" in str(outputs(params))), "500")],
    "malformed arguments": [(services.failing_if(services.reads_its_own_arguments), "500")],
    "failing tool": [
        (services.failing_if(services.reads_every_output_as_json), "500"),
        (services.trying_for_ever, "16 calls"),
    ],
    "extra fields": [(services.failing_if(lambda params: set(params) != {"input", "tools"}, 422), "422")],
    "content shapes": [(services.failing_if(services.refuses_parts), "500")],
    "odd Unicode": [(services.failing_if(services.splits_at_unicode_line_ends), "500")],
    "large input": [(services.failing_if(lambda params: len(json.dumps(params)) > 100_000, 413), "413")],
}

LOSSY: dict[str, list[tuple[services.Service, str]]] = {
    "content type": [(services.html_typed, "text/html")],
    "usage": [
        (services.without_usage(lambda params: True), "no answer reports usage"),
        (services.without_usage(lambda params: not outputs(params)), "9 of 12 answers"),
        (services.changed(usage={**count({"input": "x"})["usage"], "total_tokens": 99}), "99 in total"),
    ],
    "pairs": [(services.same_call_id, "'call' in 3 answers")],
    "arguments": [(services.asking_first(call("increment_counter", "odd", count="many")), "valid integer")],
    "finishes": [(services.changed(incomplete_details={"reason": "max_output_tokens"}), "incomplete_details")],
    "cookies": [
        (services.one_cookie_for_all(), "same value in 4 conversations"),
        (services.one_cookie_for_all("x" * 5000), "5,003 bytes"),
    ],
    "without cookies": [(services.lost_without_cookie, "no session")],
    "repeated request": [
        (
            services.forgetting_at_the_end(lambda params: count({"input": params["input"][:1]})),
            "the second time function_call",
        )
    ],
    "clean start": [(services.sampling, "get_counter_value(), increment_counter")],
    "parallel calls": [(services.one_at_a_time, "one by one")],
    "odd Unicode": [(services.failing_if(services.encodes), "500")],
}


def cases(services_of: dict[str, list[tuple[services.Service, str]]]) -> list[Any]:
    return [
        pytest.param(rule, service, words, id=f"{rule}: {words}")
        for rule, each in services_of.items()
        for service, words in each
    ]


class TestBadServices:
    @pytest.mark.parametrize(("rule", "service", "words"), cases(BAD))
    def test_it_fails_at_its_rule_and_no_other(
        self, check: Check, rule: str, service: services.Service, words: str
    ) -> None:
        report = check(service())
        assert outcome(report, "fail") == [rule]
        assert not report.ok
        self.tells(row(report, rule), words)

    @pytest.mark.parametrize(("rule", "service", "words"), cases(LOSSY))
    def test_it_is_warned_of_its_rule_and_no_other(
        self, check: Check, rule: str, service: services.Service, words: str
    ) -> None:
        report = check(service())
        assert (outcome(report, "fail"), outcome(report, "warn")) == ([], [rule])
        assert report.ok
        self.tells(row(report, rule), words)

    @staticmethod
    def tells(finding: Finding, words: str) -> None:
        assert words in finding.came
        assert finding.sent
        assert finding.why.endswith(".")
        assert finding.fix.endswith(".")

    def test_every_rule_has_a_service_that_breaks_it(self) -> None:
        elsewhere = {"reachable", "in time"}
        assert {*BAD, *LOSSY, *elsewhere} == {rule.name for rule in RULES}

    def test_a_broken_usage_does_not_hide_the_rest(self, check: Check) -> None:
        report = check(services.changed(usage={"input_tokens": 1})())
        assert set(outcome(report, "skip")) == set(NO_COOKIES)

    def test_a_service_that_is_not_there(self) -> None:
        report = RemoteAgent("http://127.0.0.1:1").check()
        assert outcome(report, "fail") == ["reachable"]
        assert len(outcome(report, "skip")) == len(RULES) - 1
        assert "3 attempts" in row(report, "reachable").came
        assert {finding.came for finding in report.findings if finding.result == "skip"} == {"first see to ‘reachable’"}

    def test_a_connection_that_breaks_at_the_second_call_is_no_unreachable_service(self) -> None:
        class Quitter(Handler):
            def do_POST(self) -> None:
                self.close_connection = True
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if not outputs(body):
                    self._send(200, count(body))

        with HTTPServer(("127.0.0.1", 0), Quitter) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            report = RemoteAgent(f"http://127.0.0.1:{server.server_port}").check()
            server.shutdown()
            thread.join()
        assert outcome(report, "fail") == ["called again"]

    @pytest.mark.parametrize(("status", "words"), [(404, "without it"), (401, "no credential"), (500, "log")])
    def test_the_fix_fits_the_status(self, check: Check, status: int, words: str) -> None:
        report = check(ScriptedAgent(lambda params: Fault(status)))
        assert words in row(report, "status").fix

    def test_a_service_that_only_one_task_breaks_is_found(self, check: Check) -> None:
        report = check(services.failing_if(lambda params: "add 5" in str(params["input"][0]))())
        assert outcome(report, "fail") == ["status"]
        assert "add 5" in row(report, "status").sent


class TestBounds:
    def test_a_service_that_is_silent_fails_in_time(self, check: Check) -> None:
        with services.silent_after(0) as service:
            report = check(service, timeout=0.1)
        assert outcome(report, "fail") == ["in time"]
        assert "timeout=0.1 s" in row(report, "in time").came

    def test_the_agents_own_bound_holds_too(self) -> None:
        with services.silent_after(0) as service, serve(service) as hosted:
            report = RemoteAgent(hosted.url, remote_responses_timeout_secs=0.1).check()
        assert outcome(report, "fail") == ["in time"]

    def test_a_check_that_got_no_answer_in_its_budget_is_no_success(self, check: Check) -> None:
        with services.silent_after(0) as service:
            report = check(service, budget=0.1)
        assert outcome(report, "fail") == ["in time"]
        assert report.seconds < 5

    def test_what_the_budget_did_not_reach_is_skipped_and_says_so(self, check: Check) -> None:
        with services.silent_after(8) as service:
            report = check(service, budget=1.0)
        assert report.ok
        assert row(report, "clean start").result == "pass"
        assert "budget=" in row(report, "large input").came
        assert row(report, "rollouts apart").result == "skip"

    def test_max_steps_of_the_agent_bounds_its_rollouts(self) -> None:
        service = services.endless()
        with serve(service) as hosted:
            report = RemoteAgent(hosted.url, max_steps=2).check()
        assert "2 calls" in row(report, "finishes").came

    def test_never_more_in_flight_than_the_agent_allows(self, check: Check) -> None:
        now, most = [0], [0]

        async def brain(params: dict[str, Any]) -> Any:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(0.001)
            now[0] -= 1
            return count(params)

        report = check(ScriptedAgent(brain), concurrency=3)
        assert most[0] == 3
        assert "3 at once" in row(report, "rollouts apart").sent

    def test_a_service_for_one_at_a_time_is_never_called_twice_at_once(self, check: Check) -> None:
        report = check(services.refusing_two_at_once(), concurrency=1)
        assert report.ok
        assert row(report, "parallel calls").came == "concurrency=1: never two at once"

    @pytest.mark.parametrize("bounds", [{"timeout": 0}, {"budget": -1}, {"budget": float("inf")}])
    def test_a_bound_that_is_none_is_refused(self, bounds: dict[str, float]) -> None:
        with pytest.raises(ConfigError, match=next(iter(bounds))):
            RemoteAgent("http://127.0.0.1:1").check(**bounds)


class TestEnvironment:
    def test_one_that_is_not_there_is_not_the_services_fault(self, check: Check) -> None:
        with pytest.raises(GymkitError, match="cannot be reached"):
            check(services.good(), env=Env("http://127.0.0.1:1", tasks=TASKS))

    def test_a_task_that_cannot_be_seeded_is_named(self, check: Check) -> None:
        bare = [{"responses_create_params": TASKS[0]["responses_create_params"]}]
        with pytest.raises(GymkitError, match=r"task 0.*initial_count"):
            check(services.good(), env=Env("counter", tasks=bare))

    def test_a_verifier_that_fails_is_told_and_the_service_judged_all_the_same(self, check: Check) -> None:
        class Broken(Counter):
            def verify(self, state: Any, task: Any, response: Any) -> float:
                raise ZeroDivisionError("in the verifier")

        report = check(services.good(), env=Env(Broken("broken"), tasks=TASKS))
        assert (outcome(report, "fail"), outcome(report, "warn")) == ([], ["finishes"])
        assert "in the verifier" in row(report, "finishes").came

    def test_no_tasks_is_refused(self, check: Check) -> None:
        with pytest.raises(ConfigError, match="no task"):
            check(services.good(), env=Env("counter", tasks=[]))

    def test_a_task_whose_input_is_text(self, check: Check) -> None:
        params = TASKS[0]["responses_create_params"]
        text = {**TASKS[0], "responses_create_params": {**params, "input": params["input"][0]["content"]}}
        assert check(services.good(), env=Env("counter", tasks=[text])).ok


class TestSecrets:
    def test_the_service_never_sees_what_belongs_to_the_verifier_or_the_environment(self, check: Check) -> None:
        service = services.stateful()
        secret = [{**task, "verifier_metadata": {"answer": "hunter2"}} for task in TASKS]
        check(service, env=Env("counter", tasks=secret))
        for received in service.received:
            assert received.path == "/v1/responses"
            assert "hunter2" not in str(received)
            assert "expected_count" not in str(received)
            assert set(received.cookies) <= {"sid"}
            assert "authorization" not in received.headers

    def test_values_of_cookies_are_not_in_the_report(self, check: Check) -> None:
        report = check(services.forgetting_at_the_end(lambda params: Fault(410))())
        assert "cookies: sid" in row(report, "repeated request").sent
        assert "secret-" not in f"{report.frame.to_csv()}{report}{report._repr_html_()}"

    def test_a_cookie_of_one_rollout_is_never_in_another(self, check: Check) -> None:
        service = services.stateful()
        check(service)
        tasks: dict[str, set[str]] = {}
        for received in service.received:
            if "sid" in received.cookies:
                tasks.setdefault(received.cookies["sid"], set()).add(str(received.params["input"][0]))
        assert len(tasks) > 10
        assert {len(prompts) for prompts in tasks.values()} == {1}


class TestTwins:
    def test_in_a_running_loop(self) -> None:
        async def attempt(url: str) -> Report:
            return await RemoteAgent(url).acheck(Env("counter"))

        with serve(services.good()) as hosted:
            assert asyncio.run(attempt(hosted.url)).ok

    def test_a_plain_call_in_a_running_loop(self) -> None:
        async def attempt(url: str) -> Report:
            return RemoteAgent(url).check()

        with serve(services.good()) as hosted:
            assert asyncio.run(attempt(hosted.url)).ok
