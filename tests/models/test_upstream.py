"""Asking a service that fails, on loopback: what is tried again, what is not, and what the caller is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from gymkit.models.upstream import FIRST_PAUSE, OVERFLOW, Upstream
from gymkit.servers.call import ModelCall, ModelFailed
from gymkit.servers.hosting import bind, serve, url_of
from gymkit.testing.agent import Fault, ScriptedAgent
from gymkit.wire import codec

Json = dict[str, Any]
SECRET = "sk-very-secret-key"
AT_ONCE = {"retry-after": "0"}


def fault(status: int, message: str = "no", headers: Any = AT_ONCE, **error: Any) -> Fault:
    return Fault(status, codec.dumps({"error": {"message": message, **error}}), dict(headers))


@contextmanager
def upstream(*replies: Any, **options: Any) -> Iterator[tuple[Upstream, ScriptedAgent]]:
    left = list(replies)
    service = ScriptedAgent(lambda _: left.pop(0) if len(left) > 1 else left[0])
    with serve(service) as hosted:
        settings: Json = {"attempts": 3, "concurrency": None, "timeout": 20.0, "headers": {}, **options}
        yield Upstream("policy", [f"{hosted.url}/v1"], api_key=SecretStr(SECRET), **settings), service


def ask(asked: Upstream, call: ModelCall | None = None) -> Json:
    async def scenario() -> Json:
        try:
            return await asked.post("/responses", {"input": "x"}, call or ModelCall("responses"))
        finally:
            await asked.aclose()

    return asyncio.run(scenario())


def failure(asked: Upstream, call: ModelCall | None = None) -> ModelFailed:
    with pytest.raises(ModelFailed) as raised:
        ask(asked, call)
    return raised.value


def test_the_key_and_further_headers_are_sent() -> None:
    with upstream({"ok": True}, headers={"x-team": SecretStr("blue")}) as (asked, service):
        call = ModelCall("responses")
        assert ask(asked, call) == {"ok": True}
    [received] = service.received
    assert received.path == "/v1/responses"
    assert received.headers["authorization"] == f"Bearer {SECRET}"
    assert received.headers["x-team"] == "blue"
    assert (call.upstream_attempted, call.upstream_status_code, call.response_source) == (True, 200, "upstream")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 529])
def test_what_may_pass_is_tried_again(status: int) -> None:
    with upstream(fault(status), fault(status), {"ok": True}) as (asked, service):
        assert ask(asked) == {"ok": True}
    assert len(service.received) == 3


def test_attempts_are_bounded_and_the_status_is_the_services_own() -> None:
    with upstream(fault(503, "try later")) as (asked, service):
        call = ModelCall("responses")
        error = failure(asked, call)
    assert len(service.received) == 3
    assert (error.status, error.category, call.upstream_status_code) == (503, "upstream_error", 503)
    assert "try later" in error.detail
    assert "3 attempts" in error.detail


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    with upstream(fault(status)) as (asked, service):
        assert failure(asked).status == status
        assert len(service.received) == 1
        failure(asked)
        assert len(service.received) == 2  # another request may be a better one


@pytest.mark.parametrize(
    "refusal",
    [
        fault(401, "bad key"),
        fault(402, "no money left"),
        fault(429, "spent", code="insufficient_quota"),
        fault(400, "spent", type="budget_exceeded"),
    ],
)
def test_a_bad_key_or_a_spent_quota_fails_all_later_calls_at_once(refusal: Fault) -> None:
    with upstream(refusal) as (asked, service):
        first = failure(asked)
        call = ModelCall("responses")
        second = failure(asked, call)
        assert len(service.received) == 1
    assert (second.status, second.kind, second.final) == (first.status, first.kind, True)
    assert not call.upstream_attempted
    assert "not asked again" in second.detail


def test_pauses_are_as_long_as_the_service_asks_and_otherwise_our_own() -> None:
    with upstream(fault(429, headers={"retry-after-ms": "150"}), {"ok": True}) as (asked, _):
        started = time.perf_counter()
        ask(asked)
        assert time.perf_counter() - started >= 0.15
    with upstream(fault(429, headers={}), {"ok": True}) as (asked, _):
        started = time.perf_counter()
        ask(asked)
        assert time.perf_counter() - started >= FIRST_PAUSE


def test_a_service_that_asks_for_too_long_a_pause_gets_no_further_attempt() -> None:
    with upstream(fault(429, headers={"retry-after": "3600"})) as (asked, service):
        error = failure(asked)
    assert len(service.received) == 1
    assert error.retry_after == 3600


def test_one_bound_holds_for_all_attempts() -> None:
    with upstream(Fault(503, seconds=0.2, headers=AT_ONCE), attempts=1000, timeout=0.5) as (asked, service):
        started = time.perf_counter()
        error = failure(asked)
        assert time.perf_counter() - started < 5
    assert (error.status, error.kind, error.category) == (504, "timeout", "timeout")
    assert len(service.received) < 10


def test_nobody_there_is_a_502_that_names_the_address() -> None:
    listener = bind("127.0.0.1", 0)
    url = url_of(listener)
    listener.close()
    asked = Upstream("policy", [url], api_key=SecretStr(""), headers={}, attempts=1, concurrency=None, timeout=20.0)
    call = ModelCall("responses")
    error = failure(asked, call)
    assert (error.status, error.kind, error.category) == (502, "unreachable", "connection")
    assert url in error.detail
    assert (call.upstream_attempted, call.upstream_status_code) == (True, None)


@pytest.mark.parametrize("body", [b"<html>", b"[1]"])
def test_a_reply_that_is_no_object_is_a_502_and_final(body: bytes) -> None:
    with upstream(body) as (asked, service):
        error = failure(asked)
    assert (error.status, len(service.received)) == (502, 1)


def test_redirects_are_not_followed() -> None:
    with upstream(Fault(307, b"", {"location": "http://127.0.0.1:9/"})) as (asked, service):
        error = failure(asked)
    assert (error.status, error.kind, len(service.received)) == (502, "redirect", 1)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "This model's maximum context length is 32 tokens", "code": 400}},
        {
            "object": "error",
            "message": "maximum context length is 32768 tokens",
            "type": "BadRequestError",
            "code": 400,
        },
        {"error": {"message": "too long", "code": "context_length_exceeded"}},
        {"error": {"message": "request (4031 tokens) exceeds", "type": "exceed_context_size_error", "code": 400}},
    ],
)
def test_a_request_longer_than_the_context_is_known_as_such(body: Json) -> None:
    with upstream(Fault(400, codec.dumps(body))) as (asked, _):
        error = failure(asked)
    assert (error.kind, error.category, error.final) == (OVERFLOW, OVERFLOW, True)


def test_a_bad_parameter_is_not_taken_for_a_long_context() -> None:
    with upstream(fault(400, "max_tokens must be at least 1")) as (asked, _):
        assert failure(asked).kind != OVERFLOW


def test_a_key_that_the_service_repeats_is_not_passed_on() -> None:
    headers = {"x-token": SecretStr("another-secret")}
    with upstream(fault(403, f"{SECRET} and another-secret are wrong"), headers=headers) as (asked, _):
        error = failure(asked)
        shown = f"{error.detail} {error!r} {asked!r} {asked}"
    assert "****" in error.detail
    assert SECRET not in shown
    assert "another-secret" not in shown


def test_a_session_stays_with_one_of_several_replicas() -> None:
    with serve(ScriptedAgent(lambda _: {"at": 1})) as one, serve(ScriptedAgent(lambda _: {"at": 2})) as two:
        asked = Upstream(
            "policy",
            [one.url, two.url],
            api_key=SecretStr(""),
            headers={},
            attempts=1,
            concurrency=None,
            timeout=20.0,
        )
        places = {
            session: {ask(asked, ModelCall("responses", session=session))["at"] for _ in range(3)}
            for session in map(str, range(12))
        }
    assert all(len(places_of_one) == 1 for places_of_one in places.values())
    assert {place for places_of_one in places.values() for place in places_of_one} == {1, 2}


def test_no_more_calls_are_in_flight_than_allowed() -> None:
    flying, most = 0, 0

    async def brain(_: Json) -> Json:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.01)
        flying -= 1
        return {"ok": True}

    async def scenario(asked: Upstream) -> None:
        await asyncio.gather(*(asked.post("/responses", {}, ModelCall("responses")) for _ in range(10)))
        await asked.aclose()

    with serve(ScriptedAgent(brain)) as hosted:
        asked = Upstream(
            "policy", [hosted.url], api_key=SecretStr(""), headers={}, attempts=1, concurrency=2, timeout=20.0
        )
        asyncio.run(scenario(asked))
    assert most == 2
