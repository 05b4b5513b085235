"""Agent sessions over their routes: every row of the contract's table, failing hooks, killed callers, and bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gymkit.agents.remote import RemoteAgent, RemoteAgentConfig
from gymkit.servers.agent import Activation, AgentServer
from gymkit.servers.agent_session import AgentSessions, AgentSessionSetupError
from gymkit.servers.http import Answer, json_answer
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.wire.agent_sessions import SeedAgentSession

EPISODE = {"rollout_id": "0-0", "attempt": 0}
SEED: dict[str, Any] = {
    "agent_session_id": "s1",
    "episode_id": EPISODE,
    "task_id": {"taskset": "counter", "task_id": "0"},
}
CLOSE = {"agent_session_id": "s1", "episode_id": EPISODE}
PARAMS = {"input": "hello"}


class Toy(AgentServer[dict[str, Any]]):
    """Counts what its hooks did; a hook does what ``on_open``, ``on_close``, ``on_respond`` say, by default nothing."""

    implementation = "toy"

    def __init__(self, *, window: float = 300.0, limit: int = 1000, ttl: float = 7200.0) -> None:
        super().__init__("toy", None)
        self.now = 0.0
        self.opened = self.closed = 0
        self.on_open: Callable[[], Awaitable[None]] | None = None
        self.on_close: Callable[[], Awaitable[None]] | None = None
        self.on_respond: Callable[[], Awaitable[None]] | None = None
        self.sessions = AgentSessions(
            "Toy___toy",
            self.open_session,
            self.close_session,
            window=window,
            limit=limit,
            ttl=ttl,
            clock=lambda: self.now,
        )

    async def run(self, row: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    async def open_session(self, seed: SeedAgentSession) -> dict[str, Any]:
        self.opened += 1
        if self.on_open:
            await self.on_open()
        return {"turns": 0}

    async def respond(self, activation: Activation[dict[str, Any]]) -> Answer:
        if activation.session is None:
            return json_answer({"turns": None})
        if self.on_respond:
            await self.on_respond()
        activation.session["turns"] += 1
        return json_answer({"turns": activation.session["turns"]})

    async def close_session(self, state: dict[str, Any]) -> Mapping[str, Any]:
        self.closed += 1
        if self.on_close:
            await self.on_close()
        return {"agent_observations": {"source": "toy", "records": [], "gaps": [], "turns": state["turns"]}}


class Caller:
    """One client; ``jar`` holds the cookie it was given, if any."""

    def __init__(self, toy: AgentServer[Any]) -> None:
        self.route = Route.to_app("toy", toy)
        self.jar = CookieJar()

    async def post(self, path: str, payload: Any, *, bare: bool = False) -> Reply:
        reply = await self.route.post(path, payload, cookies={} if bare else self.jar)
        if not bare:
            self.jar.take(reply)
        return reply

    async def seed(self, *, bare: bool = False, **fields: Any) -> Reply:
        return await self.post("/v1/agent_sessions", {**SEED, **fields}, bare=bare)

    async def close(self, *, bare: bool = False, **fields: Any) -> Reply:
        return await self.post("/v1/agent_sessions/close", {**CLOSE, **fields}, bare=bare)

    async def turn(self) -> Reply:
        return await self.post("/v1/responses", PARAMS)


def table(toy: Toy, steps: Callable[[Caller], Awaitable[Any]]) -> Any:
    return asyncio.run(steps(Caller(toy)))  # type: ignore[arg-type]


async def fail() -> None:
    raise ZeroDivisionError("in the hook")


class TestTable:
    def test_a_repeated_seed_finds_the_session(self) -> None:
        async def steps(caller: Caller) -> None:
            for bare in (False, False, True):
                reply = await caller.seed(bare=bare)
                assert (reply.status, reply.json()) == (200, {"agent_session_id": "s1"})

        table(toy := Toy(), steps)
        assert toy.opened == 1

    def test_a_cookie_of_another_session_is_refused(self) -> None:
        async def steps(caller: Caller) -> None:
            await caller.seed()
            assert (await caller.seed(agent_session_id="s2")).status == 409
            assert (await caller.close(agent_session_id="s2")).status == 409

        table(toy := Toy(), steps)
        assert (toy.opened, toy.closed) == (1, 0)

    @pytest.mark.parametrize("seeded", [True, False], ids=["closed", "closed before its seed"])
    def test_a_seed_of_a_closed_session_is_refused(self, seeded: bool) -> None:
        async def steps(caller: Caller) -> None:
            if seeded:
                await caller.seed()
            assert (await caller.close()).status == 200
            assert (await caller.seed()).status == 409
            assert (await caller.seed(bare=True)).status == 409

        table(toy := Toy(), steps)
        assert toy.opened == seeded

    def test_a_seed_of_a_session_on_its_way_out_is_refused(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            await caller.seed()
            toy.on_close = fail
            assert (await caller.close()).status == 500
            assert (await caller.seed()).status == 409
            assert (await caller.turn()).status == 409

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))

    def test_a_seed_with_the_cookie_of_an_expired_record_is_refused(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            await caller.seed()
            await caller.close()
            toy.now = 301.0
            assert (await caller.seed()).status == 409
            assert (await caller.seed(bare=True)).status == 200, "without the cookie the name is free again"

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))

    @pytest.mark.parametrize(
        "other",
        [
            {"episode_id": {"rollout_id": "0-1"}},
            {"task_id": {"taskset": "counter", "task_id": "1"}},
            {"tool_accesses": [{"kind": "direct_http", "name": "x", "required": False, "base_url": "http://h"}]},
        ],
    )
    def test_another_seed_under_the_same_name_is_refused(self, other: dict[str, Any]) -> None:
        async def steps(caller: Caller) -> None:
            await caller.seed()
            assert (await caller.seed(**other)).status == 409
            assert (await caller.seed(**other, bare=True)).status == 409

        table(toy := Toy(), steps)
        assert toy.opened == 1

    def test_a_turn_in_a_session_that_is_closed_or_gone_is_refused_and_not_taken_for_one_without(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            assert (await caller.turn()).json() == {"turns": None}
            await caller.seed()
            assert [(await caller.turn()).json()["turns"] for _ in range(3)] == [1, 2, 3]
            await caller.close()
            assert (await caller.turn()).status == 409
            toy.now = 301.0
            assert (await caller.turn()).status == 409

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))

    @pytest.mark.parametrize("value", ["", "forged", "czE=.forged", "é"])
    def test_a_cookie_that_names_nothing_is_refused(self, value: str) -> None:
        async def steps(caller: Caller) -> None:
            caller.jar["Toy___toy"] = value
            assert (await caller.turn()).status == 409
            assert (await caller.seed()).status == 409
            assert (await caller.close()).status == 409

        table(toy := Toy(), steps)
        assert toy.opened == 0

    def test_a_cookie_comes_back_from_clients_that_quote_values(self) -> None:
        """NeMo Gym's client did, and every turn of its environment servers was refused."""

        async def steps(caller: Caller) -> None:
            await caller.seed(agent_session_id="agent-session-5")
            value = caller.jar["Toy___toy"]
            assert "=" not in value
            caller.jar["Toy___toy"] = f'"{value}"'
            assert (await caller.turn()).json() == {"turns": 1}

        table(Toy(), steps)

    def test_a_cookie_of_before_a_restart_is_refused(self) -> None:
        async def steps(caller: Caller) -> None:
            await caller.seed()
            again = Caller(Toy())
            again.jar = caller.jar
            assert (await again.turn()).status == 409

        table(Toy(), steps)

    def test_a_close_for_another_episode_is_refused(self) -> None:
        async def steps(caller: Caller) -> None:
            await caller.seed()
            assert (await caller.close(episode_id={"rollout_id": "0-0", "attempt": 1})).status == 409
            assert (await caller.turn()).status == 200, "and changes nothing"
            await caller.close()
            assert (await caller.close(episode_id={"rollout_id": "0-1"}, bare=True)).status == 409

        table(toy := Toy(), steps)
        assert toy.closed == 1

    def test_a_repeated_close_is_answered_with_the_receipt(self) -> None:
        async def steps(caller: Caller) -> None:
            await caller.seed()
            await caller.turn()
            first, second, third = await caller.close(), await caller.close(), await caller.close(bare=True)
            assert first.json() == second.json() == third.json()
            assert first.json()["agent_observations"]["turns"] == 1
            assert {first.status, second.status, third.status} == {200}

        table(toy := Toy(), steps)
        assert toy.closed == 1

    def test_a_close_repeated_after_the_window_is_refused_with_the_cookie_and_news_without(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            await caller.seed()
            await caller.close()
            toy.now = 299.0
            assert (await caller.close()).status == 200
            toy.now = 301.0
            assert (await caller.close()).status == 409
            assert (await caller.close(bare=True)).json() == {"agent_session_id": "s1"}

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))
        assert toy.closed == 1

    def test_a_close_of_a_name_never_seeded_leaves_a_tombstone_for_the_window(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            assert (await caller.close(bare=True)).json() == {"agent_session_id": "s1"}
            assert (await caller.close(bare=True)).status == 200
            assert (await caller.seed(bare=True)).status == 409
            toy.now = 301.0
            assert (await caller.seed(bare=True)).status == 200

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))
        assert (toy.opened, toy.closed) == (1, 0)

    def test_a_failing_close_keeps_the_session_for_another_close(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            await caller.seed()
            await caller.turn()
            toy.on_close = fail
            for _ in range(2):
                failed = await caller.close()
                assert failed.status == 500
                assert "in the hook" in failed.json()["detail"]
            toy.on_close = None
            assert (await caller.close()).json()["agent_observations"]["turns"] == 1

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))
        assert toy.closed == 3
        assert len(toy.sessions) == 0

    def test_a_failing_seed_leaves_nothing_and_may_be_tried_again(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            toy.on_open = fail
            failed = await caller.seed()
            assert (failed.status, failed.cookies()) == (500, {})
            assert len(toy.sessions) == 0
            toy.on_open = None
            assert (await caller.seed(task_id={"taskset": "t", "task_id": "1"})).status == 200

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))

    def test_a_seed_that_fails_half_way_can_only_be_closed(self) -> None:
        async def half() -> None:
            raise AgentSessionSetupError(ZeroDivisionError("half-way"), {"turns": -1})

        async def steps(caller: Caller, toy: Toy) -> None:
            toy.on_open = half
            failed = await caller.seed()
            assert (failed.status, "half-way" in failed.json()["detail"]) == (500, True)
            assert (await caller.seed()).status == 409
            assert (await caller.close()).json()["agent_observations"]["turns"] == -1
            assert len(toy.sessions) == 0

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))
        assert (toy.opened, toy.closed) == (1, 1)

    @pytest.mark.parametrize(("path", "body"), [("/v1/agent_sessions", SEED), ("/v1/agent_sessions/close", CLOSE)])
    def test_an_agent_without_sessions_says_so(self, path: str, body: Any) -> None:
        class Bare(AgentServer[None]):
            implementation = "bare"

            async def run(self, row: dict[str, Any]) -> dict[str, Any]:
                raise NotImplementedError

        reply = asyncio.run(Caller(Bare("bare", None)).post(path, body))
        assert (reply.status, reply.json()["kind"]) == (500, "not_implemented")

    @pytest.mark.parametrize(
        "body",
        [
            [],
            {},
            {**SEED, "agent_session_id": ""},
            {**SEED, "extra": 1},
            {**SEED, "episode_id": {"rollout_id": "0-0-a1"}},
            {**SEED, "tool_accesses": [{"kind": "smoke", "name": "x", "required": True}]},
            {
                **SEED,
                "tool_accesses": [{"kind": "direct_http", "name": "-x", "required": True, "base_url": "http://h"}],
            },
        ],
    )
    def test_a_body_of_another_shape_is_refused(self, body: Any) -> None:
        assert asyncio.run(Caller(Toy()).post("/v1/agent_sessions", body)).status == 422


class TestTogether:
    def test_seeds_at_the_same_time_open_one_session(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            gate = asyncio.Event()
            toy.on_open = gate.wait  # type: ignore[assignment]
            seeds = [asyncio.create_task(caller.seed(bare=True)) for _ in range(5)]
            await asyncio.sleep(0)
            gate.set()
            assert {reply.status for reply in await asyncio.gather(*seeds)} == {200}

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))
        assert toy.opened == 1

    def test_a_close_waits_for_the_seed_that_its_caller_gave_up(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            gate = asyncio.Event()
            toy.on_open = gate.wait  # type: ignore[assignment]
            seed = asyncio.create_task(caller.seed(bare=True))
            await asyncio.sleep(0)
            seed.cancel()
            close = asyncio.create_task(caller.close(bare=True))
            await asyncio.sleep(0)
            assert (len(toy.sessions), toy.closed) == (1, 0)
            gate.set()
            assert (await close).status == 200
            assert (await caller.seed(bare=True)).status == 409

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))
        assert (toy.opened, toy.closed, len(toy.sessions)) == (1, 1, 0)

    def test_closes_at_the_same_time_run_the_hook_once(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            await caller.seed()
            gate = asyncio.Event()
            toy.on_close = gate.wait  # type: ignore[assignment]
            closes = [asyncio.create_task(caller.close(bare=True)) for _ in range(5)]
            await asyncio.sleep(0)
            closes[0].cancel()
            gate.set()
            replies = await asyncio.gather(*closes[1:])
            assert len({reply.body for reply in replies}) == 1

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))
        assert (toy.closed, len(toy.sessions)) == (1, 0)

    def test_a_close_cuts_a_turn_short(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            await caller.seed()
            toy.on_respond = asyncio.Event().wait  # type: ignore[assignment]
            turn = asyncio.create_task(caller.turn())
            await asyncio.sleep(0)
            assert (await caller.close(bare=True)).status == 200
            assert (await turn).status == 409

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))

    def test_a_turn_whose_caller_goes_is_cut_and_the_session_stays(self) -> None:
        cut: list[bool] = []

        async def long() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cut.append(True)
                raise

        async def steps(caller: Caller, toy: Toy) -> None:
            await caller.seed()
            toy.on_respond = long
            turn = asyncio.create_task(caller.turn())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            turn.cancel()
            await asyncio.wait([turn])
            assert cut == [True]
            toy.on_respond = None
            assert (await caller.turn()).json() == {"turns": 1}

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))


class TestBounds:
    def test_there_is_room_for_so_many_and_no_more(self) -> None:
        async def steps(caller: Caller) -> None:
            for number in range(3):
                assert (await caller.seed(agent_session_id=f"s{number}", bare=True)).status == 200
            full = await caller.seed(agent_session_id="s3", bare=True)
            assert (full.status, full.json()["kind"]) == (503, "sessions_full")
            await caller.close(agent_session_id="s0", bare=True)
            assert (await caller.seed(agent_session_id="s3", bare=True)).status == 200

        table(Toy(limit=3), steps)

    def test_receipts_are_bounded(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            for number in range(10):
                await caller.close(agent_session_id=f"s{number}", bare=True)
            assert len(toy.sessions._receipts) == 3

        toy = Toy(limit=3)
        table(toy, lambda caller: steps(caller, toy))

    def test_a_session_that_lies_idle_is_closed_and_one_in_use_is_not(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            used = Caller(toy)
            await caller.seed(agent_session_id="idle")
            await used.seed(agent_session_id="used")
            for hour in range(1, 4):
                toy.now = hour * 3600.0
                await used.turn()
            await used.seed(agent_session_id="used")
            await asyncio.sleep(0)
            await toy.sessions.aclose()
            assert (await caller.turn()).status == 409

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))

    def test_the_end_of_a_server_closes_what_is_left_and_survives_what_fails(self) -> None:
        async def steps(caller: Caller, toy: Toy) -> None:
            await caller.seed(agent_session_id="a", bare=True)
            await toy.aclose()
            assert (toy.closed, len(toy.sessions)) == (1, 0)
            await caller.seed(agent_session_id="b", bare=True)
            toy.on_close = fail
            await toy.aclose()

        toy = Toy()
        table(toy, lambda caller: steps(caller, toy))


def test_a_remote_agent_takes_part_in_sessions_too() -> None:
    agent = RemoteAgent("r", RemoteAgentConfig(agent_base_url="http://127.0.0.1:1"), Route.to_app("toy", Toy()))

    async def steps(caller: Caller) -> None:
        assert (await caller.seed()).status == 200
        assert (await caller.close()).json() == {"agent_session_id": "s1"}

    asyncio.run(steps(Caller(agent)))


class Model(RuleBasedStateMachine):
    """Random seeds, turns, closes and hours against a model of five lines."""

    def __init__(self) -> None:
        super().__init__()
        self.toy = Toy()
        self.loop = asyncio.new_event_loop()
        self.open: set[str] = set()
        self.buried: dict[str, float] = {}

    def teardown(self) -> None:
        self.loop.close()

    def do(self, work: Awaitable[Reply]) -> int:
        return self.loop.run_until_complete(work).status  # type: ignore[arg-type]

    @rule(name=st.sampled_from("abc"))
    def seed(self, name: str) -> None:
        dead = self.buried.get(name, -1.0) > self.toy.now
        assert self.do(Caller(self.toy).seed(agent_session_id=name)) == (409 if dead else 200)
        if not dead:
            self.open.add(name)

    @rule(name=st.sampled_from("abc"))
    def close(self, name: str) -> None:
        assert self.do(Caller(self.toy).close(agent_session_id=name)) == 200
        if name in self.open or self.buried.get(name, -1.0) <= self.toy.now:
            self.buried[name] = self.toy.now + 300.0
        self.open.discard(name)

    @rule(name=st.sampled_from("abc"))
    def turn(self, name: str) -> None:
        caller = Caller(self.toy)
        caller.jar["Toy___toy"] = self.toy.sessions.set_cookie(name).decode().partition(";")[0].partition("=")[2]
        assert self.do(caller.turn()) == (200 if name in self.open else 409)

    @rule(seconds=st.sampled_from([1.0, 299.0, 300.0]))
    def wait(self, seconds: float) -> None:
        if self.toy.now + seconds < 7000.0:
            self.toy.now += seconds

    @invariant()
    def sessions_are_the_open_ones(self) -> None:
        assert len(self.toy.sessions) == len(self.open)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=30, deadline=None)
