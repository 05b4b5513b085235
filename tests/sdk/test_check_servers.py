"""The report on a server: every kind of ours is fit, one that breaks a rule is told which and how to mend it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gymkit.environments.single_agent_turn_legacy import SingleAgentTurnLegacy
from gymkit.errors import ConfigError
from gymkit.sdk.check.report import Report
from gymkit.sdk.check.servers import acheck_server
from gymkit.servers.hosting import serve
from tests.testing.test_conformance import ROW, Bent, counter, simple, status, turn


def check(kind: str, app: Any, task: Any = ROW, **bounds: Any) -> Report:
    with serve(app) as hosted:
        return asyncio.run(acheck_server(kind, hosted.url, task, environment="counter", **bounds))


def found(report: Report, rule: str) -> Any:
    return next(each for each in report.findings if each.rule == rule)


@pytest.mark.parametrize(
    ("kind", "make", "skipped"),
    [
        ("resources", counter, set()),
        ("agent", simple, set()),
        ("environment", turn, {"flat row"}),
        (
            "environment",
            lambda: turn(SingleAgentTurnLegacy),
            {"episode", "attempts", "result", "together", "shapes", "no cookie"},
        ),
    ],
)
def test_ours_are_fit(kind: str, make: Any, skipped: set[str]) -> None:
    report = check(kind, make())
    assert report.ok, str(report)
    assert {each.rule for each in report.findings if each.result == "skip"} == skipped
    assert report.calls >= 3
    assert report.frame["result"].isin(["pass", "skip"]).all()


def test_what_is_broken_is_told_with_what_was_sent_why_and_how_to_mend_it() -> None:
    report = check("agent", Bent(simple(), "/v1/agent_sessions", status(200)))
    assert not report.ok
    told = found(report, "seed after close")
    assert told.result == "fail"
    assert "POST /v1/agent_sessions" in told.sent
    assert "was answered 200, not 409" in told.came
    assert "Answer 409" in told.fix
    assert "FAIL  seed after close" in str(report)


def test_without_a_task_what_can_be_judged_is_judged() -> None:
    report = check("environment", turn(), None)
    assert report.ok
    assert found(report, "alive").result == "pass"
    assert found(report, "episode").result == "skip"


def test_a_server_that_is_not_there_fails() -> None:
    report = asyncio.run(acheck_server("environment", "http://127.0.0.1:1", ROW))
    assert found(report, "alive").result == "fail"
    assert "cannot be reached" in found(report, "alive").came


def test_a_check_out_of_time_skips_the_rest() -> None:
    report = check("agent", simple(), budget=1e-9)
    assert {each.result for each in report.findings} == {"skip"}


@pytest.mark.parametrize(
    ("kind", "url", "word"),
    [
        ("agents", "http://127.0.0.1:1", "did you mean 'agent'"),
        ("agent", "ftp://x", "http"),
        ("agent", "http://me:hunter2@x", "credentials"),
    ],
)
def test_what_cannot_be_checked_is_refused(kind: str, url: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as caught:
        asyncio.run(acheck_server(kind, url))
    assert "hunter2" not in str(caught.value)
