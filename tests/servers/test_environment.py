"""The base of environment servers over its routes: admission, deadline, letting go, failures, own protocols."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from gymkit.errors import BadStatus, CallTimeout, InvalidReply, Unreachable
from gymkit.servers.environment import EnvironmentConfig, EnvironmentServer
from gymkit.servers.episode import Episode, EpisodeFailed, sheltered
from gymkit.servers.route import Reply, Route
from gymkit.testing.agent import Fault, ScriptedAgent
from gymkit.wire.episodes import EpisodeResponse


class Question(BaseModel):
    """A task of the toy protocol."""

    number: int


Play = Callable[[Episode[Question]], Awaitable[dict[str, Any]]]


class Toy(EnvironmentServer[Question]):
    """Plays what the test says."""

    implementation = "toy"
    Task = Question

    def __init__(self, protocol: Play, **bounds: Any) -> None:
        super().__init__("toy", EnvironmentConfig(**bounds))
        self.protocol = protocol

    async def play(self, episode: Episode[Question]) -> dict[str, Any]:
        return await self.protocol(episode)


def request(number: Any = 7, rollout: str = "0-0", attempt: int = 0) -> dict[str, Any]:
    return {
        "episode_id": {"rollout_id": rollout, "attempt": attempt},
        "task": {"task_id": {"taskset": "toy", "task_id": "t"}, "task_input": {"number": number}},
    }


async def post(server: Toy, body: Any | None = None) -> Reply:
    return await Route.to_app("toy", server).post("/run", request() if body is None else body)


def run(protocol: Play, body: Any | None = None, **bounds: Any) -> dict[str, Any]:
    reply = asyncio.run(post(Toy(protocol, **bounds), body)).expect_ok().json_object()
    EpisodeResponse.model_validate(reply)
    return reply


async def win(episode: Episode[Question]) -> dict[str, Any]:
    return {"reward": 1.0, "number": episode.task.number}


class TestProtocol:
    def test_one_class_with_one_method(self) -> None:
        reply = run(win, request(7, "3-1", 2))
        assert reply == {
            "episode_id": {"rollout_id": "3-1", "attempt": 2},
            "task_id": {"taskset": "toy", "task_id": "t"},
            "result": {"reward": 1.0, "number": 7},
            "failure": None,
        }

    def test_an_episode_knows_its_names(self) -> None:
        async def names(episode: Episode[Question]) -> dict[str, Any]:
            paths = [episode.path("/verify"), episode.path("/v1/responses", training=True)]
            return {"task": episode.task_id.task_id, "key": episode.id.capture_key, "paths": paths}

        assert run(names, request(1, "3-1", 2))["result"] == {
            "task": "t",
            "key": "3-1-a2",
            "paths": ["/ng-rollout/3-1-a2/verify", "/ng-rollout/3-1-a2/training-token-capture/v1/responses"],
        }

    @pytest.mark.parametrize(
        "body",
        [
            [1],
            {},
            request("seven"),
            {**request(), "extra": 1},
            {**request(), "episode_id": {"rollout_id": "0-0-a1"}},
            {"responses_create_params": {"input": "a flat row"}},
        ],
    )
    def test_a_request_of_another_shape_is_refused(self, body: Any) -> None:
        reply = asyncio.run(post(Toy(win), body))
        assert reply.status == 422
        assert reply.json()["detail"]

    def test_the_same_episode_may_be_played_twice(self) -> None:
        server = Toy(win)
        replies = [asyncio.run(post(server)).json() for _ in range(2)]
        assert replies[0] == replies[1]

    def test_it_has_no_session_cookie(self) -> None:
        assert asyncio.run(post(Toy(win))).cookies() == {}

    def test_metrics_are_computed_here_unless_another_server_does_it(self) -> None:
        rows = {"verify_responses": [{"reward": 1.0, "_ng_task_index": 0, "_ng_rollout_index": 0}]}
        server = Toy(win)
        route = Route.to_app("toy", server)
        assert asyncio.run(route.post("/aggregate_metrics", rows)).json()["agent_metrics"]["mean/reward"] == 1.0
        server.metrics = Route.to_app("other", ScriptedAgent(lambda body: {"seen": len(body["verify_responses"])}))
        assert asyncio.run(route.post("/aggregate_metrics", rows)).json() == {"seen": 1}


class TestFailures:
    def test_a_handled_failure_is_told_verbatim_and_what_is_unknown_is_absent(self) -> None:
        async def fail(episode: Episode[Question]) -> dict[str, Any]:
            raise EpisodeFailed("the dice fell off the table", terminal=False)

        reply = run(fail)
        assert reply["failure"] == {"failure_reason": "the dice fell off the table", "terminal": False}
        assert reply["result"] is None

    def test_a_handled_failure_with_everything(self) -> None:
        async def fail(episode: Episode[Question]) -> dict[str, Any]:
            raise EpisodeFailed("x" * 3000, terminal=True, kind="toy:dice", stage="agent", partial_response={"id": "r"})

        failure = run(fail)["failure"]
        assert failure == {
            "failure_reason": "x" * 2000,
            "terminal": True,
            "failure_kind": "toy:dice",
            "stage": "agent",
            "partial_response": {"id": "r"},
        }

    def test_anything_else_is_a_terminal_fault_of_this_server(self, caplog: pytest.LogCaptureFixture) -> None:
        async def fail(episode: Episode[Question]) -> dict[str, Any]:
            raise ZeroDivisionError("y" * 3000)

        failure = run(fail)["failure"]
        assert failure["terminal"] is True
        assert failure["failure_reason"].startswith("Unhandled environment server error: ZeroDivisionError: yyy")
        assert len(failure["failure_reason"]) == 2000
        assert "stage" not in failure
        assert "ZeroDivisionError" in caplog.text

    def test_an_inner_timeout_is_not_the_episodes(self) -> None:
        async def fail(episode: Episode[Question]) -> dict[str, Any]:
            raise TimeoutError("mine")

        assert "TimeoutError: mine" in run(fail)["failure"]["failure_reason"]

    @pytest.mark.parametrize("key", ["_ng_task_index", "ng_trajectory", "ng_model_call_capture", "ng_perf"])
    def test_a_result_with_a_collectors_key_is_a_failure(self, key: str) -> None:
        async def trespass(episode: Episode[Question]) -> dict[str, Any]:
            return {"reward": 1.0, key: 1}

        failure = run(trespass)["failure"]
        assert key in failure["failure_reason"]
        assert failure["terminal"] is True

    @pytest.mark.parametrize(
        ("error", "terminal", "kind"),
        [
            *((BadStatus("s", server="s", url="u", status=status), False, "http_status") for status in (408, 425, 429)),
            *((BadStatus("s", server="s", url="u", status=status), False, "http_status") for status in (500, 502, 599)),
            *((BadStatus("s", server="s", url="u", status=code), True, "http_status") for code in (400, 404, 409, 422)),
            (Unreachable("s", server="s", url="u"), False, "unreachable"),
            (CallTimeout("s", server="s", url="u"), False, "timeout"),
            (InvalidReply("s", server="s", url="u"), True, "invalid_response"),
            (TimeoutError(), False, None),
            (ValueError("bad"), True, None),
        ],
    )  # fmt: skip
    def test_what_may_go_away_by_itself_is_not_terminal(
        self, error: Exception, terminal: bool, kind: str | None
    ) -> None:
        async def fail(episode: Episode[Question]) -> dict[str, Any]:
            with episode.stage("verification", {"id": "r"}):
                raise error
            return {}

        failure = run(fail)["failure"]
        assert (failure["terminal"], failure.get("failure_kind")) == (terminal, kind)
        assert (failure["stage"], failure["partial_response"]) == ("verification", {"id": "r"})
        assert failure["failure_reason"] == (str(error) or type(error).__name__)

    def test_a_failing_call_outside_any_stage_is_still_told_as_a_call(self) -> None:
        busy = Route.to_app("busy", ScriptedAgent(lambda params: Fault(503, b"come back")))

        async def fail(episode: Episode[Question]) -> dict[str, Any]:
            return (await busy.post("/x", {})).expect_ok().json_object()

        failure = run(fail)["failure"]
        assert (failure["terminal"], failure["failure_kind"]) == (False, "http_status")
        assert "come back" in failure["failure_reason"]


class TestBounds:
    def test_the_deadline(self) -> None:
        closed: list[str] = []

        async def long(episode: Episode[Question]) -> dict[str, Any]:
            episode.at_end("a", _noting(closed, "a"))
            await asyncio.Event().wait()
            return {}

        failure = run(long, default_episode_timeout_seconds=0.05)["failure"]
        assert failure["failure_reason"].startswith("Episode timed out")
        assert "default_episode_timeout_seconds=0.05" in failure["failure_reason"]
        assert (failure["terminal"], "stage" in failure) == (False, False)
        assert closed == ["a"]

    def test_the_queue(self) -> None:
        async def crowd() -> list[dict[str, Any]]:
            gate = asyncio.Event()

            async def wait(episode: Episode[Question]) -> dict[str, Any]:
                await gate.wait()
                return {"reward": 1.0}

            server = Toy(wait, max_concurrent_episodes=2, queue_timeout_seconds=0.05)
            first = [asyncio.create_task(post(server)) for _ in range(2)]
            await asyncio.sleep(0)
            late = (await post(server)).json()
            gate.set()
            after = (await post(server)).json()
            return [late, after, *[(await task).json() for task in first]]

        late, after, *first = asyncio.run(crowd())
        assert late["failure"]["stage"] == "admission"
        assert late["failure"]["failure_reason"].startswith("Episode admission timed out")
        assert late["failure"]["terminal"] is False
        assert [reply["result"] for reply in (after, *first)] == [{"reward": 1.0}] * 3

    def test_slots_are_given_in_the_order_of_arrival_and_all_come_back(self) -> None:
        async def crowd() -> list[int]:
            order: list[int] = []
            now, most = 0, 0

            async def play(episode: Episode[Question]) -> dict[str, Any]:
                nonlocal now, most
                order.append(episode.task.number)
                now, most = now + 1, max(most, now + 1)
                await asyncio.sleep(0)
                now -= 1
                if episode.task.number % 3 == 0:
                    raise ZeroDivisionError
                return {}

            server = Toy(play, max_concurrent_episodes=2, queue_timeout_seconds=30)
            await asyncio.gather(*[post(server, request(number)) for number in range(12)])
            assert most == 2
            return order

        assert asyncio.run(crowd()) == list(range(12))

    def test_a_queue_needs_its_patience(self) -> None:
        with pytest.raises(ValidationError, match="queue_timeout_seconds"):
            EnvironmentConfig(max_concurrent_episodes=3)

    @pytest.mark.parametrize(
        "bounds",
        [
            {"max_concurrent_episodes": 0, "queue_timeout_seconds": 1},
            {"default_episode_timeout_seconds": 0},
            {"cleanup_timeout_seconds": float("inf")},
            {"cleanup_timeout": 3},
        ],
    )
    def test_a_bound_that_is_none_is_refused(self, bounds: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            EnvironmentConfig(**bounds)


def _noting(into: list[str], name: str) -> Callable[[], Awaitable[None]]:
    async def note() -> None:
        into.append(name)

    return note


async def _raise() -> None:
    raise ZeroDivisionError("in the closing")


class TestLettingGo:
    @pytest.mark.parametrize("fails", [False, True])
    def test_the_last_registered_goes_first_whatever_the_others_do(
        self, fails: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        closed: list[str] = []

        async def play(episode: Episode[Question]) -> dict[str, Any]:
            episode.at_end("a", _noting(closed, "a"))
            episode.at_end("broken", _raise)
            episode.at_end("b", _noting(closed, "b"))
            if fails:
                raise EpisodeFailed("no", terminal=False)
            return {"reward": 1.0}

        with caplog.at_level(logging.WARNING, "gymkit"):
            reply = run(play)
        assert closed == ["b", "a"]
        assert "broken cannot be let go of" in caplog.text
        assert (reply["failure"] is not None) is fails, "a failing close takes back no verdict"

    def test_one_bound_for_all_and_the_verdict_stays(self, caplog: pytest.LogCaptureFixture) -> None:
        closed: list[str] = []

        async def play(episode: Episode[Question]) -> dict[str, Any]:
            episode.at_end("never reached", _noting(closed, "a"))
            episode.at_end("hangs", asyncio.Event().wait)  # type: ignore[arg-type]
            episode.at_end("b", _noting(closed, "b"))
            return {"reward": 1.0}

        assert run(play, cleanup_timeout_seconds=0.05)["result"] == {"reward": 1.0}
        assert closed == ["b"]
        assert "not let go of within 0.05 s: never reached, hangs" in caplog.text

    def test_what_was_closed_in_time_is_not_closed_again_and_what_failed_is(self) -> None:
        closed: list[str] = []
        attempts: list[int] = []

        async def flaky() -> None:
            attempts.append(1)
            if len(attempts) == 1:
                raise ZeroDivisionError

        async def play(episode: Episode[Question]) -> dict[str, Any]:
            early = episode.at_end("a", _noting(closed, "a"))
            await early.now()
            await early.now()
            late = episode.at_end("flaky", flaky)
            with episode.stage("cleanup"):
                await late.now()
            return {}

        assert run(play)["failure"]["stage"] == "cleanup"
        assert (closed, len(attempts)) == (["a"], 2)

    def test_a_caller_that_goes_away_leaves_nothing_open(self) -> None:
        closed: list[str] = []

        async def main() -> tuple[bool, dict[str, Any]]:
            begun = asyncio.Event()

            async def slow() -> None:
                for _ in range(5):
                    await asyncio.sleep(0)
                closed.append("slow")

            async def play(episode: Episode[Question]) -> dict[str, Any]:
                episode.at_end("slow", slow)
                if begun.is_set():
                    return {"reward": 1.0}
                begun.set()
                await asyncio.Event().wait()
                return {}

            server = Toy(play, max_concurrent_episodes=1, queue_timeout_seconds=5)
            task = asyncio.create_task(post(server))
            await begun.wait()
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()  # again, while it lets go
            await asyncio.wait([task])
            assert closed == ["slow"]
            return task.cancelled(), (await post(server)).json()

        cancelled, after = asyncio.run(main())
        assert cancelled
        assert after["result"] == {"reward": 1.0}, "the slot came back"

    def test_shelter(self) -> None:
        async def main() -> None:
            assert await sheltered(asyncio.sleep(0, "done")) == "done"
            with pytest.raises(ZeroDivisionError):
                await sheltered(_raise())

        asyncio.run(main())
