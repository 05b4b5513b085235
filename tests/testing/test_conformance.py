"""Our servers keep every rule of the contract, and each rule catches a server that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import SkipTest

import pytest

from gymkit.agents.function import FunctionAgent, FunctionAgentConfig
from gymkit.agents.remote import RemoteAgent, RemoteAgentConfig
from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.environments.legacy_agent import LegacyAgent
from gymkit.environments.single_agent_turn import SingleAgentTurn, SingleAgentTurnConfig
from gymkit.environments.single_agent_turn_legacy import SingleAgentTurnLegacy
from gymkit.resources import load
from gymkit.sdk.env import Env
from gymkit.servers.hosting import serve
from gymkit.servers.http import AsgiApp, Receive, Scope, Send
from gymkit.servers.route import Route
from gymkit.testing.agent import ScriptedAgent, answer
from gymkit.testing.conformance import RULES, Broken, Rule
from gymkit.wire import codec

ROW = Env("counter").rows[0]
EPISODE = {"task_id": {"taskset": "counter", "task_id": "0"}, "task_input": ROW}


def counter() -> Any:
    return load("counter")("counter")


def model() -> Route:
    return Route.to_app("policy", ScriptedAgent(lambda params: [answer("done")]))


def simple(resources: bool = True) -> SimpleAgent:
    room = Route.to_app("counter", counter())
    return SimpleAgent("simple", SimpleAgentConfig(), model(), room if resources else None, neighbours=[room])


def turn(kind: type[SingleAgentTurn] = SingleAgentTurn, **config: Any) -> SingleAgentTurn:
    room = Route.to_app("counter", counter())
    player = SimpleAgent("player", SimpleAgentConfig(), model(), neighbours=[room])
    settings = SingleAgentTurnConfig(resources_tool_transports=("direct_http",), **config)
    return kind("turn", settings, room, Route.to_app("player", player))


def function() -> FunctionAgent:
    return FunctionAgent("f", FunctionAgentConfig(), lambda params: "done", Route.to_app("counter", counter()))


OURS: list[tuple[str, str, Callable[[], AsgiApp], Any]] = [
    ("resources", "counter", counter, ROW),
    ("resources", "counter by episodes", counter, EPISODE),
    ("resources", "weather", lambda: load("weather")("weather"), Env("weather").rows[0]),
    ("resources", "synonyms", lambda: load("synonyms")("synonyms"), Env("synonyms").rows[0]),
    ("agent", "simple", simple, ROW),
    ("agent", "simple in sessions only", lambda: simple(resources=False), EPISODE),
    ("agent", "function", function, ROW),
    ("environment", "single_agent_turn", turn, EPISODE),
    ("environment", "with a queue", lambda: turn(max_concurrent_episodes=2, queue_timeout_seconds=20), EPISODE),
    ("environment", "single_agent_turn_legacy", lambda: turn(SingleAgentTurnLegacy), ROW),
    ("environment", "legacy_agent", lambda: LegacyAgent("relay", Route.to_app("simple", simple())), ROW),
]


@pytest.mark.parametrize(
    ("rule", "make", "task"),
    [
        pytest.param(rule, make, task, id=f"{name}-{rule}".replace(" ", "_"))
        for kind, name, make, task in OURS
        for rule in RULES[kind]
    ],
)
def test_ours_keep_it(rule: Rule, make: Callable[[], AsgiApp], task: Any) -> None:
    rule.check(make(), task)


@pytest.mark.parametrize("rule", RULES["agent"], ids=str)
def test_a_remote_agent_keeps_it_over_sockets(rule: Rule) -> None:
    with serve(ScriptedAgent(lambda params: [answer("done")])) as service:
        config = RemoteAgentConfig(agent_base_url=service.url)
        agent = RemoteAgent("remote", config, Route.to_app("counter", counter()))
        with serve(agent) as hosted:
            rule.check(hosted.url, ROW)


Edit = Callable[[int, Any], tuple[int, Any]]
"""From the status and the body of an answer to others."""


class Bent:
    """A server whose answers under paths that end in ``end`` are edited; ``cookie`` False takes their cookies off."""

    def __init__(self, app: AsgiApp, end: str, edit: Edit = lambda *a: a, *, cookie: bool = True) -> None:
        self._app, self._end, self._edit, self._cookie = app, end, edit, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].endswith(self._end):
            return await self._app(scope, receive, send)
        sent: list[Any] = []

        async def keep(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, keep)
        body = b"".join(message.get("body", b"") for message in sent)
        status, content = self._edit(sent[0]["status"], codec.loads(body))
        headers = [line for line in sent[0]["headers"] if line[0] not in (b"content-length", b"set-cookie")]
        headers += [line for line in sent[0]["headers"] if line[0] == b"set-cookie" and self._cookie]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": codec.dumps(content)})


def status(wrong: int, right: int = 409) -> Edit:
    return lambda found, body: (wrong if found == right else found, body)


def without(key: str) -> Edit:
    return lambda found, body: (found, {name: value for name, value in body.items() if name != key})


def put(key: str, value: Any) -> Edit:
    return lambda found, body: (found, {**body, key: value} if found == 200 else body)


def in_result(key: str, value: Any) -> Edit:
    return lambda found, body: (found, {**body, "result": {**body["result"], key: value}} if found == 200 else body)


def counting(key: str) -> Edit:
    numbers: Iterator[int] = iter(range(10**6))
    return lambda found, body: (found, {**body, key: next(numbers)} if found == 200 else body)


class Forgetful:
    """A server that is a new one for each request: nothing it was told lasts."""

    def __init__(self, make: Callable[[], AsgiApp]) -> None:
        self._make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._make()(scope, receive, send)


RESOURCES: list[tuple[str, AsgiApp]] = [
    ("alive", Bent(counter(), "/", status(503, 200))),
    ("seed by row", Bent(counter(), "/seed_session", cookie=False)),
    ("typed seed", Bent(counter(), "/seed_session", without("resources_session_id"))),
    ("repeated seed", Bent(counter(), "/seed_session", counting("resources_session_id"))),
    ("repeated close", Bent(counter(), "/close_session", without("resources_session_id"))),
    ("close of unknown", Bent(counter(), "/close_session", status(404, 200))),
    ("seed after close", Bent(counter(), "/seed_session", status(200))),
    ("sessions apart", Bent(counter(), "/seed_session", cookie=False)),
    ("prefix", Bent(counter(), "/ng-rollout/0-0/seed_session", status(404, 200))),
    ("cookie on every reply", Bent(counter(), "/no_such_tool_of_this_server", cookie=False)),
    ("unknown tool", Bent(counter(), "/no_such_tool_of_this_server", status(500, 404))),
    ("verdict", Bent(counter(), "/verify", put("reward", "1"))),
    ("verdict", Bent(counter(), "/verify", without("response"))),
    ("verdict", Bent(counter(), "/verify", put("mask_sample", "no"))),
    ("verdict", Bent(counter(), "/verify", counting("reward"))),
    ("verdict", Forgetful(counter)),
    ("no verdict on nonsense", Bent(counter(), "/verify", status(200, 422))),
    ("metrics", Bent(counter(), "/aggregate_metrics", without("key_metrics"))),
]
SEED, CLOSE = "/v1/agent_sessions", "/v1/agent_sessions/close"
AGENTS: list[tuple[str, AsgiApp]] = [
    ("alive", Bent(simple(), "/", status(503, 200))),
    ("session", Bent(simple(), SEED, cookie=False)),
    ("session", Bent(simple(), CLOSE, status(500, 200))),
    ("session", Bent(simple(), SEED, put("agent_session_id", "other"))),
    ("repeated seed", Bent(simple(), SEED, counting("agent_session_id"))),
    ("another's cookie", Bent(simple(), SEED, status(200))),
    ("another's cookie", Bent(simple(), CLOSE, status(404))),
    ("another seed", Bent(simple(), SEED, status(200))),
    ("another seed", Forgetful(simple)),
    ("seed after close", Bent(simple(), SEED, status(404))),
    ("close before seed", Bent(simple(), SEED, status(200))),
    ("close before seed", Forgetful(simple)),
    ("another's episode", Bent(simple(), CLOSE, status(200))),
    ("repeated close", Bent(simple(), CLOSE, counting("number"))),
    ("turn after close", Bent(simple(), "/v1/responses", status(200))),
    ("shapes", Bent(simple(), SEED, status(200, 422))),
    ("prefixes", Bent(simple(), "/ng-rollout/0-0/v1/responses", status(404, 422))),
    ("prefixes", Bent(simple(), "training-token-capture/v1/responses", status(500, 422))),
    ("turns", Bent(simple(), "/v1/responses", without("output"))),
    ("turns", Bent(simple(), "/v1/responses", status(500, 200))),
    ("run", Bent(simple(), "/run", without("reward"))),
    ("run", Bent(simple(), "/run", status(500, 200))),
]
ENVIRONMENTS: list[tuple[str, AsgiApp]] = [
    ("alive", Bent(turn(), "/", status(503, 200))),
    ("episode", Bent(turn(), "/run", without("failure"))),
    ("episode", Bent(turn(), "/run", put("result", None))),
    ("episode", Bent(turn(), "/run", put("note", "hello"))),
    ("episode", Bent(turn(), "/run", status(500, 200))),
    ("attempts", Bent(turn(), "/run", put("episode_id", {"rollout_id": "0-0", "attempt": 0}))),
    ("together", Bent(turn(), "/run", put("task_id", {"taskset": "x", "task_id": "y"}))),
    ("result", Bent(turn(), "/run", in_result("_ng_task_index", 1))),
    ("result", Bent(turn(), "/run", in_result("reward", None))),
    ("shapes", Bent(turn(), "/run", status(200, 422))),
    ("no cookie", Bent(counter(), "/run", status(200, 404))),
    ("metrics", Bent(turn(), "/aggregate_metrics", without("agent_metrics"))),
]


@pytest.mark.parametrize(
    ("kind", "name", "app", "task"),
    [
        pytest.param(kind, name, app, task, id=f"{kind}-{name}-{number}".replace(" ", "_"))
        for kind, task, broken in (
            ("resources", ROW, RESOURCES), ("agent", ROW, AGENTS), ("environment", EPISODE, ENVIRONMENTS),
        )
        for number, (name, app) in enumerate(broken)
    ],
)  # fmt: skip
def test_a_server_that_breaks_it_is_caught(kind: str, name: str, app: AsgiApp, task: Any) -> None:
    (rule,) = [rule for rule in RULES[kind] if rule.name == name]
    with pytest.raises(Broken) as caught:
        rule.check(app, task)
    assert str(caught.value)


def test_each_rule_is_broken_by_some_server() -> None:
    tried = {
        (kind, name)
        for kind, broken in (("resources", RESOURCES), ("agent", AGENTS), ("environment", ENVIRONMENTS))
        for name, _ in broken
    }
    every = {(kind, rule.name) for kind, rules in RULES.items() for rule in rules}
    assert every - tried == {("environment", "flat row")}


def test_a_flat_row_is_answered_with_a_reward_or_a_failure() -> None:
    (rule,) = [rule for rule in RULES["environment"] if rule.name == "flat row"]
    with pytest.raises(Broken, match="neither a reward"):
        rule.check(Bent(turn(SingleAgentTurnLegacy), "/run", without("reward")), ROW)


def test_without_a_task_the_rules_that_need_one_are_skipped() -> None:
    skipped = []
    for kind, app in (("resources", counter()), ("agent", simple()), ("environment", turn())):
        for rule in RULES[kind]:
            try:
                rule.check(app)
            except SkipTest as reason:
                skipped.append((kind, rule.name))
                assert "task row" in str(reason)
    assert ("resources", "verdict") in skipped
    assert ("environment", "episode") in skipped
    assert ("agent", "repeated close") not in skipped


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(Broken, match="cannot be reached"):
        RULES["agent"][0].check("http://127.0.0.1:1")


def test_an_agent_without_sessions_has_those_rules_skipped() -> None:
    relay = LegacyAgent("relay", Route.to_app("counter", counter()))
    with pytest.raises(SkipTest, match="no agent sessions"):
        RULES["agent"][1].check(relay)
