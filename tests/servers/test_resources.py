"""The resources server over its routes: seeds, tools, verify, close, and what an agent may not reach."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from gymkit.errors import JudgeFailed, JudgeUnparseable, Unreachable
from gymkit.resources import load
from gymkit.resources.counter import Counter, CounterState, CounterTask
from gymkit.servers.resources import ResourcesServer, Verdict
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.servers.session import Sessions
from gymkit.servers.tool import tool
from gymkit.testing.agent import answer, call, respond
from gymkit.wire.tasks import TaskRow

PARAMS: dict[str, Any] = {"input": [{"role": "user", "content": "add 2"}]}
TASK = {"responses_create_params": PARAMS, "initial_count": 3, "expected_count": 5}
TYPED = {
    "resources_session_id": "rs-1",
    "episode_id": {"rollout_id": "0-0", "attempt": 0},
    "task_id": {"taskset": "counter", "task_id": "0"},
    "task_data": {"initial_count": 3, "expected_count": 5},
}


class Client:
    """A caller with a cookie jar."""

    def __init__(self, server: ResourcesServer[Any]) -> None:
        self.route = Route.to_app(server.name, server)
        self.jar = CookieJar()

    async def post(self, path: str, payload: Any) -> Reply:
        reply = await self.route.post(path, payload, cookies=self.jar)
        self.jar.take(reply)
        return reply


def do(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def verify_body(*items: dict[str, Any]) -> dict[str, Any]:
    return {**TASK, "response": respond(list(items) or [answer("5")])}


def test_a_rollout_by_its_row() -> None:
    async def rollout() -> None:
        client = Client(Counter("counter"))
        assert (await client.post("/seed_session", TASK)).json() == {}
        assert (await client.post("/increment_counter", {"count": 2})).json() == {"success": True}
        assert (await client.post("/get_counter_value", {})).json() == {"count": 5}
        verdict = (await client.post("/verify", verify_body())).json()
        assert verdict["reward"] == 1.0
        assert verdict["mask_sample"] is False
        assert "failure_kind" not in verdict
        assert verdict["responses_create_params"] == PARAMS
        assert "expected_count" not in verdict, "the answer key is not echoed"

    do(rollout())


def test_a_rollout_by_the_typed_form_is_idempotent_where_the_contract_says_so() -> None:
    async def rollout() -> None:
        client = Client(Counter("counter"))
        assert (await client.post("/seed_session", TYPED)).json() == {"resources_session_id": "rs-1"}
        await client.post("/increment_counter", {"count": 2})
        assert (await client.post("/seed_session", TYPED)).json() == {"resources_session_id": "rs-1"}
        assert (await client.post("/get_counter_value", {})).json() == {"count": 5}, "a replayed seed resets nothing"
        conflict = await client.post("/seed_session", {**TYPED, "task_data": {"initial_count": 0, "expected_count": 5}})
        assert conflict.status == 409
        assert (await client.post("/verify", verify_body())).json()["reward"] == 1.0
        close = {"resources_session_id": "rs-1", "episode_id": TYPED["episode_id"]}
        assert (await client.post("/close_session", close)).json() == {"resources_session_id": "rs-1"}
        assert (await client.post("/close_session", close)).status == 200
        assert (await client.post("/seed_session", TYPED)).status == 409, "a delayed seed of a closed session"

    do(rollout())


def test_closing_an_unknown_session_succeeds_and_buries_it() -> None:
    async def close() -> None:
        client = Client(Counter("counter"))
        assert (await client.post("/close_session", {"resources_session_id": "x", "episode_id": {}})).status == 200
        assert (await client.post("/seed_session", {**TYPED, "resources_session_id": "x"})).status == 409

    do(close())


def test_every_reply_carries_the_session_cookie_and_health_needs_none() -> None:
    async def calls() -> None:
        server = Counter("counter_resources_server")
        client = Client(server)
        first = (await client.post("/seed_session", TASK)).cookies()
        assert list(first) == ["Counter___counter_resources_server"]
        assert (await client.post("/increment_counter", {"count": 1})).cookies() == first
        for path in ("/", "/health", "/healthz", "/livez", "/readyz"):
            reply = await client.route.get(path, timeout=5)
            assert (reply.status, reply.json()) == (200, {"status": "ok"})

    do(calls())


def test_two_rollouts_do_not_share_state() -> None:
    async def calls() -> None:
        server = Counter("counter")
        one, two = Client(server), Client(server)
        await one.post("/seed_session", TASK)
        await two.post("/seed_session", TASK)
        await one.post("/increment_counter", {"count": 10})
        assert (await two.post("/get_counter_value", {})).json() == {"count": 3}

    do(calls())


@pytest.mark.parametrize(
    ("path", "payload", "status", "kind"),
    [
        ("/increment_counter", {"count": "many"}, 422, "invalid_arguments"),
        ("/increment_counter", {}, 422, "invalid_arguments"),
        ("/increment_counter", [1], 422, "invalid"),
        ("/increment_counter", b"{", 422, "invalid"),
        ("/nothing", {}, 404, "unknown_tool"),
        ("/a/b", {}, 404, "unknown_tool"),
        ("/verify", {**TASK, "response": {}}, 422, "invalid"),
        ("/verify", {"response": respond([answer("5")])}, 422, "invalid_task"),
        ("/seed_session", {"responses_create_params": PARAMS}, 422, "invalid_task"),
        ("/seed_session", [], 422, "invalid"),
        ("/close_session", {}, 422, "invalid"),
        ("/aggregate_metrics", {"verify_responses": 3}, 422, "invalid"),
    ],
)
def test_what_does_not_fit_is_answered_with_a_reason(path: str, payload: Any, status: int, kind: str) -> None:
    async def ask() -> Reply:
        client = Client(Counter("counter"))
        await client.post("/seed_session", TASK)
        return await client.post(path, payload)

    reply = do(ask())
    assert (reply.status, reply.json()["kind"]) == (status, kind)
    assert reply.json()["detail"]


def test_an_unknown_tool_is_answered_with_the_names_of_those_there_are() -> None:
    async def ask() -> str:
        client = Client(Counter("counter"))
        return (await client.post("/incremnt", {})).json()["detail"]

    assert do(ask()) == "unknown tool 'incremnt'; this environment serves increment_counter, get_counter_value"


def test_a_stateful_verifier_never_scores_a_session_it_does_not_know() -> None:
    async def ask(cookie: str | None) -> dict[str, Any]:
        server = Counter("counter")
        clock = iter(range(0, 100_000, 5_000))
        server.sessions = Sessions(server.sessions.name, clock=lambda: float(next(clock)))
        client = Client(server)
        if cookie == "expired":
            await client.post("/seed_session", TASK)
            await Client(server).post("/seed_session", TASK)
            await Client(server).post("/seed_session", TASK)
        reply = await client.post("/verify", verify_body())
        assert reply.status == 409
        return reply.json()

    assert do(ask(None))["kind"] == "session_lost"
    assert do(ask("expired"))["kind"] == "session_expired"


@pytest.mark.parametrize(("path", "body"), [("/increment_counter", {"count": 1}), ("/verify", verify_body())])
def test_a_call_that_comes_after_the_close_leaves_no_session_behind(path: str, body: dict[str, Any]) -> None:
    async def late() -> tuple[str, int]:
        server = Counter("counter")
        client = Client(server)
        await client.post("/seed_session", TYPED)
        await client.post("/close_session", {"resources_session_id": "rs-1", "episode_id": TYPED["episode_id"]})
        reply = await client.post(path, body)
        return reply.json()["kind"], len(server.sessions)

    assert do(late()) == ("session_expired", 0)


def test_a_stateless_verifier_scores_a_fresh_session() -> None:
    async def ask() -> Any:
        client = Client(load("example_single_tool_call")("weather"))
        body = {
            "responses_create_params": PARAMS,
            "response": respond([call("get_weather", city="Oslo"), answer("cold")]),
        }
        assert (await client.route.get("/reverify_mode", timeout=5)).json() == "stateless"
        return (await client.post("/verify", body)).json()["reward"]

    assert do(ask()) == 1.0


def test_the_rollout_prefix_is_taken_off_every_route() -> None:
    async def ask() -> None:
        client = Client(Counter("counter"))
        assert (await client.post("/ng-rollout/0-0-a1/seed_session", TASK)).status == 200
        assert (await client.post("/ng-rollout/0-0-a1/get_counter_value", {})).json() == {"count": 3}

    do(ask())


FAILURES = {
    "judge": JudgeFailed("no route to the judge"),
    "unreachable": Unreachable("judge cannot be reached", server="judge", url="http://127.0.0.1:9"),
    "unparseable": JudgeUnparseable("the judge answered 'meh'"),
}


class Odd(ResourcesServer[dict[str, Any]]):
    """Tools and verifiers that misbehave on request."""

    implementation = "odd"

    class Task(TaskRow):
        """Says how."""

        how: str

    def seed(self, task: Any) -> dict[str, Any]:
        return {"how": task.how}

    @tool
    async def slow(self, state: dict[str, Any], words: list[str], times: int = 2) -> str:
        """Repeat words.

        Not part of the description.
        """
        await asyncio.sleep(0)
        return " ".join(words * times)

    @tool
    def broken(self, state: dict[str, Any]) -> None:
        raise ZeroDivisionError("of all things")

    @tool
    def picky(self, state: dict[str, Any]) -> None:
        CounterTask.model_validate({})

    @tool
    def unsent(self, state: dict[str, Any]) -> Any:
        return {"open": open}

    def verify(self, state: dict[str, Any], task: Any, response: dict[str, Any]) -> float | Verdict:
        if state["how"] == "raise":
            raise KeyError("no such word")
        if state["how"] in FAILURES:
            raise FAILURES[state["how"]]
        if state["how"] == "mask":
            return Verdict(0.0, mask_sample=True, failure_kind="odd:mask", reward_components={"a": 1}, extras={"n": 3})
        return float(state["how"])


@pytest.mark.parametrize(("how", "kind"), [("nan", "verifier_error"), ("inf", "verifier_error"), ("raise", "internal")])
def test_a_verifier_that_breaks_gives_no_reward(how: str, kind: str) -> None:
    async def ask() -> Reply:
        client = Client(Odd("odd"))
        await client.post("/seed_session", {"responses_create_params": PARAMS, "how": how})
        return await client.post("/verify", {**verify_body(), "how": how})

    reply = do(ask())
    assert (reply.status, reply.json()["kind"]) == (500, kind)
    assert "reward" not in reply.json()


def test_a_verdict_says_more_than_a_number() -> None:
    async def ask() -> Any:
        client = Client(Odd("odd"))
        await client.post("/seed_session", {"responses_create_params": PARAMS, "how": "mask"})
        return (await client.post("/verify", {**verify_body(), "how": "mask"})).json()

    verdict = do(ask())
    assert verdict["mask_sample"] is True
    assert verdict["reward_components"] == {"a": 1.0}
    assert (verdict["failure_kind"], verdict["n"]) == ("odd:mask", 3)


def test_tools_are_async_or_not_have_defaults_and_may_break() -> None:
    async def ask() -> None:
        client = Client(Odd("odd"))
        await client.post("/seed_session", {"responses_create_params": PARAMS, "how": "0"})
        assert (await client.post("/slow", {"words": ["a", "b"]})).json() == "a b a b"
        broken = await client.post("/broken", {})
        assert (broken.status, broken.json()["detail"]) == (500, "ZeroDivisionError: of all things")

    do(ask())


@pytest.mark.parametrize(
    ("name", "told"),
    [("broken", "ZeroDivisionError: of all"), ("picky", "ValidationError: "), ("unsent", "is not JSON")],
)
def test_a_tool_that_breaks_is_an_answer_of_the_same_session(name: str, told: str) -> None:
    """An error of the tool's own is not one of the arguments, and the session goes on."""

    async def ask() -> None:
        client = Client(Odd("odd"))
        first = await client.post("/seed_session", {"responses_create_params": PARAMS, "how": "0"})
        broken = await client.post(f"/{name}", {})
        assert (broken.status, broken.json()["kind"]) == (500, "tool_error")
        assert told in broken.json()["detail"]
        assert broken.cookies() == first.cookies()
        assert (await client.post("/slow", {"words": ["on"]})).status == 200

    do(ask())


def test_a_tool_that_breaks_again_and_again_is_logged_whole_once(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        client = Client(Odd("odd"))
        await client.post("/seed_session", {"responses_create_params": PARAMS, "how": "0"})
        for _ in range(3):
            await client.post("/broken", {})

    with caplog.at_level("WARNING", "gymkit"):
        do(ask())
    assert [record.getMessage().splitlines()[0] for record in caplog.records] == ["odd: the tool broken raised"]
    assert ", in broken" in caplog.text
    assert ", in call_tool" not in caplog.text, "the traceback begins in the tool"
    assert "ZeroDivisionError: of all things" in caplog.text


def verified(how: str) -> dict[str, Any]:
    async def ask() -> Any:
        client = Client(Odd("odd"))
        await client.post("/seed_session", {"responses_create_params": PARAMS, "how": how})
        reply = await client.post("/verify", {**verify_body(), "how": how})
        assert reply.status == 200
        return reply.json()

    return do(ask())


@pytest.mark.parametrize("how", ["judge", "unreachable"])
def test_a_judge_that_cannot_be_called_is_no_verdict_but_a_failure_row(how: str) -> None:
    row = verified(how)
    assert (row["reward"], row["mask_sample"], row["failure_kind"]) == (0.0, True, "judge_failed")
    assert row["_ng_failure_class"] == "judge_failed"
    assert str(FAILURES[how]) in row["failure_reason"] == row["_ng_failure_judge_error"]
    assert row["how"] == how, "the task's fields are there, so that it can be a task again"
    assert row["response"] == verify_body()["response"]


def test_a_judge_that_cannot_be_read_masks_the_result() -> None:
    row = verified("unparseable")
    assert (row["reward"], row["mask_sample"], row["failure_kind"]) == (0.0, True, "judge_unparseable")
    assert row["failure_reason"] == "the judge answered 'meh'"
    assert "_ng_failure_class" not in row
    assert "how" not in row


def test_a_tools_schema_comes_from_its_signature_and_docstring() -> None:
    schema = Odd("odd").tools["slow"].schema()
    assert schema["description"] == "Repeat words."
    assert schema["parameters"]["required"] == ["words"]
    assert schema["parameters"]["properties"]["words"] == {"type": "array", "items": {"type": "string"}}
    assert "state" not in schema["parameters"]["properties"]


def test_a_full_server_refuses_a_new_rollout_with_a_sentence() -> None:
    async def ask() -> Reply:
        server = Counter("counter")
        server.sessions = Sessions(server.sessions.name, limit=1)
        await Client(server).post("/seed_session", TASK)
        return await Client(server).post("/seed_session", TASK)

    reply = do(ask())
    assert (reply.status, reply.json()["kind"]) == (503, "sessions_full")


def test_verified_sessions_do_not_pile_up() -> None:
    """A collector that goes through an agent's /run never closes its sessions; a long run must not leak them."""

    async def ask() -> int:
        server = Counter("counter")
        server.sessions = Sessions(server.sessions.name, linger=0.0)
        for _ in range(50):
            client = Client(server)
            await client.post("/seed_session", TASK)
            await client.post("/verify", verify_body())
        return len(server.sessions)

    assert do(ask()) <= 1


def test_a_task_that_lacks_a_field_is_named() -> None:
    assert Counter.check_task(TASK) == []
    assert Counter.check_task({"responses_create_params": PARAMS, "initial_count": 1}) == [
        "expected_count: Field required"
    ]
    assert isinstance(Counter("c").seed(CounterTask.model_validate(TASK)), CounterState)
