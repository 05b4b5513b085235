"""Whose failure becomes what: each class of error of the environment server, over the servers' routes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

pytest.importorskip("usersim")

from gymkit.servers.app import ServerApp
from gymkit.servers.fault import Fault
from gymkit.servers.http import Answer, Refused, Request, json_answer
from gymkit.testing import usersim as scripted
from gymkit.testing.agent import answer, call, respond
from gymkit.usersim.cast import Cast
from gymkit.usersim.runtime import Activation, EpisodeRuntime, Spoken
from gymkit.wire import codec
from tests.usersim.house import House, agent, model, row_of

Params = dict[str, Any]


class Agent(ServerApp):
    """An agent server whose ``/v1/responses`` does what a test says; it counts what is opened and closed."""

    server_type = "responses_api_agents"
    implementation = "test_agent"

    def __init__(self, respond_with: Callable[[Params], Any], *, seed: int = 200, close: int = 200) -> None:
        super().__init__("test_agent")
        self._respond = respond_with
        self._statuses = seed, close
        self.opened: list[Params] = []
        self.closed: list[Params] = []

    def handlers(self) -> Mapping[str, Callable[[Request], Awaitable[Any]]]:
        return {
            "POST /v1/agent_sessions": self._seed,
            "POST /v1/agent_sessions/close": self._close,
            "POST /v1/responses": self._responses,
        }

    async def _seed(self, request: Request) -> Answer:
        body = request.json_object()
        self.opened.append(body)
        if self._statuses[0] != 200:
            raise Refused(self._statuses[0], "no seat", kind="test")
        cookie = {b"set-cookie": b"seat=1; path=/"}
        return json_answer({"agent_session_id": body["agent_session_id"]}, headers=cookie)

    async def _close(self, request: Request) -> Answer:
        body = request.json_object()
        self.closed.append(body)
        if self._statuses[1] != 200:
            raise Refused(self._statuses[1], "cannot close", kind="test")
        return json_answer({"agent_session_id": body["agent_session_id"]})

    async def _responses(self, request: Request) -> Any:
        assert request.cookie("seat") == "1"
        told = self._respond(request.json_object())
        told = await told if isinstance(told, Awaitable) else told
        if isinstance(told, Fault):
            raise Refused(told.status, "scripted fault", kind="test")
        if isinstance(told, Exception):
            raise told
        return told


def good(params: Params) -> Any:
    return respond([answer("I am glad to help.")])


def failing(status: int) -> Agent:
    return Agent(lambda _: Fault(status))


ROW = "general_open_ended"


@pytest.mark.parametrize("status", [404, 408, 409, 425, 429, 500, 502, 503])
def test_an_assistant_that_cannot_answer_now_is_no_measurement(status: int) -> None:
    failure = House(assistant_app=failing(status)).failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", False)
    assert failure["failure_kind"] == "usersim:assistant_http_status"
    assert failure["failure_reason"].startswith("the assistant failed: ")


@pytest.mark.parametrize("status", [400, 401, 403, 413, 422])
def test_an_assistant_that_refuses_is_measured(status: int) -> None:
    result = House(assistant_app=failing(status)).result(row_of(ROW))
    assert (result["reward"], result["mask_sample"]) == (0.0, False)
    assert result["failure_kind"] == "usersim:assistant_activation_error"


@pytest.mark.parametrize(
    "reply",
    [
        {"no": "response"},
        ["a list"],
        "a text",
        Answer(b"not json", headers=[(b"content-type", b"application/json")]),
    ],
    ids=["wrong shape", "list", "text", "no JSON"],
)
def test_an_assistant_whose_answer_is_no_response_is_measured(reply: Any) -> None:
    result = House(assistant_app=Agent(lambda _: reply)).result(row_of(ROW))
    assert (result["reward"], result["mask_sample"]) == (0.0, False)
    assert result["failure_kind"] == "usersim:assistant_activation_error"


@pytest.mark.parametrize(
    ("probe", "calls", "said"),
    [
        (ROW, [call("anything")], "where no tools are offered"),
        ("tool_calling", [call("not_offered")], "which is not offered"),
        ("tool_calling", "twice", "have the call_id"),
        ("tool_calling", "blank", "has no call_id"),
    ],
)
def test_tool_calls_that_cannot_be_recorded_are_measured(probe: str, calls: Any, said: str) -> None:
    def brain(params: Params) -> Any:
        if isinstance(calls, list):
            return calls
        name = params["tools"][0]["name"]
        return [call(name, "same"), call(name, "same")] if calls == "twice" else [call(name, " ")]

    result = House(assistant=brain).result(row_of(probe))
    assert (result["reward"], result["mask_sample"]) == (0.0, False)
    assert said in result["failure_reason"]


def test_an_assistant_that_takes_too_long_is_no_measurement() -> None:
    async def never(_: Params) -> Any:
        await asyncio.Event().wait()

    house = House(assistant_app=Agent(never), config={"actor_call_timeout_seconds": 0.05})
    failure = house.failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", False)
    assert "actor_call_timeout_seconds=0.05" in failure["failure_reason"]
    assert failure["failure_kind"] == "usersim:assistant_timeout"


def test_an_assistant_that_cannot_be_reached_is_no_measurement() -> None:
    async def unreachable(scope: Any, receive: Any, send: Any) -> None:
        raise OSError("connection refused")

    failure = House(assistant_app=unreachable).failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", False)
    assert failure["failure_kind"] == "usersim:assistant_unreachable"


@pytest.mark.parametrize(("status", "terminal"), [(404, False), (409, False), (500, False), (422, True)])
def test_an_assistant_that_takes_no_session(status: int, terminal: bool) -> None:
    failure = House(assistant_app=Agent(good, seed=status)).failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", terminal)
    assert failure["failure_reason"].startswith("the assistant failed: ")


@pytest.mark.parametrize(
    ("status", "terminal"), [(404, False), (408, False), (409, False), (429, False), (503, False), (400, True)]
)
def test_any_error_of_the_user_is_a_failure_and_attributed_to_it(status: int, terminal: bool) -> None:
    failure = House(user_app=failing(status)).failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", terminal)
    assert failure["failure_kind"] == "usersim:user_http_status"
    assert failure["failure_reason"].startswith("the simulated user failed: ")


def test_a_user_whose_answer_is_no_response_is_a_terminal_failure() -> None:
    failure = House(user_app=Agent(lambda _: {"no": "response"})).failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", True)
    assert failure["failure_kind"] == "usersim:user_invalid_response"


@pytest.mark.parametrize("status", [404, 409, 400])
def test_a_supporting_model_that_refuses_is_a_terminal_failure(status: int) -> None:
    failure = House(roles={"judge": lambda _: Fault(status)}).failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", True)
    assert failure["failure_reason"].startswith("the judge model failed: ")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_a_supporting_model_that_cannot_answer_now_is_a_retryable_failure(status: int) -> None:
    failure = House(roles={"judge": lambda _: Fault(status)}).failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", False)
    assert failure["failure_kind"] == "usersim:judge_http_status"


@pytest.mark.parametrize(("status", "terminal"), [(503, False), (400, True)])
def test_the_model_that_plays_tools_is_named_when_it_fails(status: int, terminal: bool) -> None:
    asked: list[Params] = []

    def broken(params: Params) -> Any:
        asked.append(params)
        return Fault(status)

    failure = House(roles={"tool_simulation": broken}).failure(row_of("tool_calling"))
    assert (failure["stage"], failure["terminal"]) == ("agent", terminal)
    assert failure["failure_kind"] == "usersim:tool_simulation_http_status"
    assert failure["failure_reason"].startswith("the model that plays the tools failed: ")
    assert len(asked) == 1, "model servers ask again themselves"


class Runtime:
    """A runtime that breaks where a test says."""

    probe_type = "test"

    def __init__(self, error: Exception, after: int) -> None:
        self.error = error
        self.after = after
        self.steps = 0
        self.closed = 0

    async def advance(self, spoken: Spoken | None = None) -> Activation | None:
        if self.steps == self.after:
            raise self.error
        self.steps += 1
        return Activation(f"a{self.steps}", "assistant", ({"role": "user", "content": "hi"},))

    async def close(self) -> None:
        self.closed += 1


class Broken:
    """Opens it."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime

    async def open(self, row: Mapping[str, Any], cast: Cast) -> EpisodeRuntime:
        if isinstance(self.runtime, Exception):
            raise self.runtime
        return self.runtime  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("error", [RuntimeError("broke"), ValueError("contract"), KeyError("gone")])
def test_a_runtime_that_breaks_is_a_terminal_failure(error: Exception) -> None:
    """Also a ValueError: after a valid reply it is no mistake of the assistant's."""
    runtime = Runtime(error, after=1)
    failure = House(stage=Broken(runtime)).failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("agent", True)
    assert type(error).__name__ in failure["failure_reason"]
    assert runtime.closed == 1


def test_an_episode_that_cannot_be_built_is_a_terminal_failure() -> None:
    row = row_of(ROW)
    row["resolved_row"]["probe_type"] = "no_such_probe"
    failure = House().failure(row)
    assert (failure["stage"], failure["terminal"]) == ("agent", True)
    assert "no_such_probe" in failure["failure_reason"]


@pytest.mark.parametrize(("problem", "terminal"), [("row", True), ("cookie", True), ("status", False)])
def test_a_seed_that_fails_is_a_failure_of_that_stage(problem: str, terminal: bool) -> None:
    row = row_of(ROW)
    house = House()
    if problem == "row":
        row["resolved_row"]["probe_variant"] = "guarded"
    else:

        class Seeder(ServerApp):
            server_type = "resources_servers"
            implementation = "test"

            def handlers(self) -> Mapping[str, Callable[[Request], Awaitable[Any]]]:
                return {"POST /seed_session": self._seed}

            async def _seed(self, request: Request) -> Any:
                if problem == "status":
                    raise Refused(503, "later", kind="test")
                return {"resources_session_id": request.json_object()["resources_session_id"]}

        from gymkit.servers.route import Route

        house.environment.resources = Route.to_app("seeder", Seeder("seeder"))
    failure = house.failure(row)
    assert (failure["stage"], failure["terminal"]) == ("seed", terminal)


def test_a_verifier_that_answers_with_an_error_is_a_failure_of_that_stage() -> None:
    house = House()

    async def refuse(request: Request) -> Any:
        raise Refused(500, "out of order", kind="test")

    house.resources._handlers["POST /verify"] = refuse
    failure = house.failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("verification", False)


def test_an_agent_that_cannot_be_dismissed_is_a_failure_before_any_verdict() -> None:
    verified: list[int] = []
    house = House(assistant_app=Agent(good, close=422))
    own = house.resources._handlers["POST /verify"]

    async def counted(request: Request) -> Any:
        verified.append(1)
        return await own(request)

    house.resources._handlers["POST /verify"] = counted
    failure = house.failure(row_of(ROW))
    assert (failure["stage"], failure["terminal"]) == ("cleanup", True)
    assert verified == []


def test_agents_are_dismissed_assistant_first_and_before_the_verdict() -> None:
    order: list[str] = []
    user_app, assistant_app = agent("u", model("um", scripted.user)), agent("a", model("am", scripted.assistant()))
    house = House(user_app=user_app, assistant_app=assistant_app)
    for name, app, path in (
        ("user", user_app, "POST /v1/agent_sessions/close"),
        ("assistant", assistant_app, "POST /v1/agent_sessions/close"),
        ("verify", house.resources, "POST /verify"),
        ("close", house.resources, "POST /close_session"),
    ):
        own = app._handlers[path]

        async def noted(request: Request, own: Any = own, name: str = name) -> Any:
            order.append(name)
            return await own(request)

        app._handlers[path] = noted
    house.result(row_of(ROW))
    assert order == ["assistant", "user", "verify", "close"]
    assert len(user_app.sessions) == len(assistant_app.sessions) == len(house.resources.sessions) == 0


@pytest.mark.parametrize("probe", [ROW, "tool_calling"])
def test_a_failed_episode_leaves_nothing_open(probe: str) -> None:
    user_app = agent("u", model("um", scripted.user))
    assistant_app = agent("a", model("am", lambda _: Fault(503)))
    house = House(user_app=user_app, assistant_app=assistant_app)
    house.failure(row_of(probe))
    assert len(user_app.sessions) == len(assistant_app.sessions) == len(house.resources.sessions) == 0


def test_an_episode_that_takes_too_long_can_be_tried_again_and_is_let_go_of() -> None:
    async def never(_: Params) -> Any:
        await asyncio.Event().wait()

    app = Agent(never)
    failure = House(assistant_app=app, config={"default_episode_timeout_seconds": 0.3}).failure(row_of(ROW))
    assert failure["terminal"] is False
    assert "default_episode_timeout_seconds" in failure["failure_reason"]
    assert len(app.closed) == 1


def test_an_episode_that_gets_no_slot_can_be_tried_again() -> None:
    async def go() -> dict[str, Any]:
        reached, release = asyncio.Event(), asyncio.Event()

        async def slow(_: Params) -> Any:
            reached.set()
            await release.wait()
            return good({})

        house = House(assistant_app=Agent(slow), config={"max_concurrent_episodes": 1, "queue_timeout_seconds": 0.05})
        first = asyncio.create_task(house.arun(row_of(ROW)))
        await reached.wait()
        told = await house.arun(row_of(ROW))
        release.set()
        assert (await first)["failure"] is None
        return told

    failure = asyncio.run(go())["failure"]
    assert (failure["stage"], failure["terminal"]) == ("admission", False)


def test_a_task_of_another_shape_is_refused_at_the_door() -> None:
    async def go() -> tuple[int, str]:
        house = House()
        task = {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {"resolved_row": {}, "more": 1}}
        reply = await house.route.post("/run", {"episode_id": {"rollout_id": "0-0"}, "task": task})
        return reply.status, reply.text

    status, text = asyncio.run(go())
    assert status == 422
    assert "more" in text


def test_parameters_of_an_unknown_role_are_refused_at_the_door() -> None:
    async def go() -> int:
        row = {**row_of(ROW), "role_request_params": {"referee": {}}}
        from gymkit.usersim.task import materialized

        reply = await House().route.post("/run", {"episode_id": {"rollout_id": "0-0"}, "task": materialized(row)})
        return reply.status

    assert asyncio.run(go()) == 422


def test_failures_are_lines_of_the_sidecar_and_masks_are_rows(tmp_path: Any) -> None:
    """Through the collector, as a run keeps them."""
    import gymkit as gk

    rows = [row_of(ROW), row_of("tool_calling")]

    def picky(params: Params) -> Any:
        return Fault(503) if params.get("tools") else scripted.assistant()(params)

    episode = gk.UserSimEpisode(
        assistant=picky, user=scripted.user, support=scripted.support(), assistant_name=scripted.MODEL_NAME
    )
    run = episode.rollouts(rows, output=tmp_path / "r.jsonl", progress=False)
    assert list(run.rewards["status"]) == ["scored", "failed"]
    line = codec.loads((tmp_path / "r_failures.jsonl").read_bytes().splitlines()[0])
    assert line["_ng_failure_class"] == "environment_server_failed"
    assert line["_ng_failure_stage"] == "agent"
    assert line["failure_kind"] == "usersim:assistant_http_status"
    assert "reward" not in line
    again = run.rerun(run.rewards["status"] == "failed")
    assert list(again.rewards["status"]) == ["scored", "failed"]
    assert len(again.failures) == 2
