"""What an agent server is held to: above all that its sessions survive lost, late and repeated requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymkit.errors import WireError
from gymkit.servers.route import CookieJar, Reply
from gymkit.testing.conformance.rule import ALIVE, Broken, NotApplicable, Peer, Rule, body_of, expect, same
from gymkit.wire.responses import check_response
from gymkit.wire.tasks import is_materialized

_SEED = "/v1/agent_sessions"
_CLOSE = "/v1/agent_sessions/close"
_TURN = "/v1/responses"
_EPISODE = {"rollout_id": "0-0", "attempt": 0}
_GREETING = {"input": "Say hello."}
_NO_REQUEST = {"input": 5}
"""A body that no agent takes: where it is refused for its shape, the route is there and no model was asked."""


def _seed(peer: Peer, **fields: Any) -> dict[str, Any]:
    names = {"episode_id": _EPISODE, "task_id": {"taskset": "conformance", "task_id": "0"}}
    return {"agent_session_id": peer.fresh("agent"), **names, **fields}


def _close(seed: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"agent_session_id": seed["agent_session_id"], "episode_id": seed["episode_id"], **fields}


async def _opened(peer: Peer) -> tuple[dict[str, Any], CookieJar]:
    """A fresh session. Raises NotApplicable for an agent that has none."""
    seed, jar = _seed(peer), CookieJar()
    reply = await peer.post(_SEED, seed, jar)
    if reply.status in (404, 405, 501) or (reply.status == 500 and "implement" in reply.text.lower()):
        raise NotApplicable("it implements no agent sessions")
    same(expect(reply, 200, of="a seed"), "agent_session_id", seed["agent_session_id"])
    if not jar:
        raise Broken("the seed was answered without a cookie to bind later calls to the session")
    return seed, jar


async def _session(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    closed = expect(await peer.post(_CLOSE, _close(seed), jar), 200, of="a close")
    same(closed, "agent_session_id", seed["agent_session_id"])


async def _repeated_seed(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    for cookies in (jar, CookieJar()):
        again = expect(await peer.post(_SEED, seed, cookies), 200, of="a repeated seed")
        same(again, "agent_session_id", seed["agent_session_id"])
    await peer.post(_CLOSE, _close(seed), jar)


async def _other_cookie(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    other = _seed(peer)
    expect(await peer.post(_SEED, other, CookieJar(jar)), 409, of="a seed with another session's cookie")
    expect(await peer.post(_CLOSE, _close(other), CookieJar(jar)), 409, of="a close with another session's cookie")
    await peer.post(_CLOSE, _close(seed), jar)


async def _other_seed(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    for fields in ({"episode_id": {"rollout_id": "0-1"}}, {"task_id": {"taskset": "other", "task_id": "0"}}):
        reply = await peer.post(_SEED, {**seed, **fields}, CookieJar())
        expect(reply, 409, of="another seed under the same agent_session_id")
    await peer.post(_CLOSE, _close(seed), jar)


async def _seed_after_close(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    await peer.post(_CLOSE, _close(seed), jar)
    for cookies in (jar, CookieJar()):
        expect(await peer.post(_SEED, seed, cookies), 409, of="a seed of a closed session")


async def _tombstone(peer: Peer) -> None:
    await _session(peer)
    seed = _seed(peer)
    for _ in range(2):
        reply = await peer.post(_CLOSE, _close(seed), CookieJar())
        same(expect(reply, 200, of="a close before any seed"), "agent_session_id", seed["agent_session_id"])
    expect(await peer.post(_SEED, seed, CookieJar()), 409, of="a seed that arrives after its close")


async def _other_episode(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    other = _close(seed, episode_id={"rollout_id": "0-0", "attempt": 1})
    expect(await peer.post(_CLOSE, other, jar), 409, of="a close for another episode")
    expect(await peer.post(_CLOSE, _close(seed), jar), 200, of="the right close after it")


async def _receipt(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    first = expect(await peer.post(_CLOSE, _close(seed), jar), 200, of="a close")
    for cookies in (jar, CookieJar()):
        again = expect(await peer.post(_CLOSE, _close(seed), cookies), 200, of="a repeated close")
        if body_of(again) != body_of(first):
            raise Broken(f"a repeated close was answered otherwise than the first: {again.text[:120]}")


async def _turn_after_close(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    await peer.post(_CLOSE, _close(seed), jar)
    reply = await peer.post(_TURN, {"input": "hello"}, jar)
    expect(reply, 409, of="a turn in a closed session")


async def _shapes(peer: Peer) -> None:
    await _session(peer)
    access = {"kind": "direct_http", "name": "tools", "required": False, "base_url": "http://127.0.0.1:1"}
    odd: dict[str, dict[str, Any]] = {
        "with a key too many": {"something": 1},
        "without a name": {"agent_session_id": ""},
        "with a rollout id that looks like a retry": {"episode_id": {"rollout_id": "0-0-a1"}},
        "with two accesses of one name": {"tool_accesses": [access, access]},
    }
    for what, fields in odd.items():
        expect(await peer.post(_SEED, _seed(peer, **fields), CookieJar()), 422, of=f"a seed {what}")


async def _prefixes(peer: Peer) -> None:
    statuses = {}
    for prefix in ("", "/ng-rollout/0-0", "/ng-rollout/0-0/training-token-capture"):
        statuses[prefix] = (await peer.post(f"{prefix}{_TURN}", _NO_REQUEST)).status
    if any(status in (404, 405) or status >= 500 for status in statuses.values()):
        told = ", ".join(f"{prefix}{_TURN} {status}" for prefix, status in statuses.items())
        raise Broken(f"a request that is none should be refused (422) with and without prefixes: {told}")


async def _turn(peer: Peer) -> None:
    seed, jar = await _opened(peer)
    reply = expect(await peer.post(f"/ng-rollout/0-0{_TURN}", _GREETING, jar), 200, of="a turn")
    try:
        check_response(reply.json())
    except WireError as error:
        raise Broken(f"a turn was answered with no Response: {'; '.join(error.problems)}") from error
    second = expect(await peer.post(_TURN, _GREETING, jar), 200, of="a second turn in the same session")
    _no_foreign_status(second)
    expect(await peer.post(_CLOSE, _close(seed), jar), 200, of="a close after two turns")


def _no_foreign_status(reply: Reply) -> None:
    if body_of(reply).get("object") != "response":
        raise Broken("a turn was answered with something other than a Response")


async def _run(peer: Peer) -> None:
    task = peer.task
    if is_materialized(task):
        raise NotApplicable("an agent's /run takes flat rows, and the task is none")
    reply = await peer.post("/run", {**task, "_ng_task_index": 0, "_ng_rollout_index": 0})
    if reply.status == 500 and "session" in reply.text:
        raise NotApplicable("it takes part in sessions only")
    body = body_of(expect(reply, 200, of="/run"))
    if "_ng_failure_class" not in body and not isinstance(body.get("reward"), int | float):
        raise Broken("the row has neither a reward nor _ng_failure_class")


_TWICE = "A caller that lost a reply sends its request again."

RULES: tuple[Rule, ...] = (
    ALIVE,
    Rule("session", "An environment server drives an agent through its sessions.",
         "Take POST /v1/agent_sessions and …/close, echo the id, set a cookie at the seed.", _session),
    Rule("repeated seed", _TWICE, "Find the session that is there; create nothing anew.", _repeated_seed),
    Rule("another's cookie", "The cookie and not the body says whose turn it is.",
         "Answer 409 when the cookie's session is not the body's.", _other_cookie),
    Rule("another seed", "Two episodes must never share a session.",
         "Answer 409 for a seed that differs from the one that opened the session.", _other_seed),
    Rule("seed after close", "A seed that was held up would open a session that nobody closes.",
         "Answer 409 while the receipt is held.", _seed_after_close),
    Rule("close before seed", "A close may overtake its seed.",
         "Answer 200 and refuse the seed when it arrives (409).", _tombstone),
    Rule("another's episode", "A close that was meant for an earlier attempt must not end this one.",
         "Answer 409 when the episode is not the one that was seeded.", _other_episode),
    Rule("repeated close", _TWICE, "Keep the receipt for a while and answer with it.", _receipt),
    Rule("turn after close", "A late turn must not be taken for one without a session.",
         "Answer 409 to a cookie whose session is closed.", _turn_after_close),
    Rule("shapes", "What is not of the contract is refused where it happens, not half-way through an episode.",
         "Answer 422.", _shapes),
    Rule("prefixes", "Callers name the rollout, and whether tokens are wanted, before /v1/responses.",
         "Take both prefixes off.", _prefixes),
    Rule("turns", "An agent answers with everything that it did in the turn.",
         "Answer /v1/responses in a session with a Responses API object, as often as it is asked.", _turn),
    Rule("run", "A collector that knows nothing of sessions sends the task row to /run.",
         "Answer 200 with the verified row, or with a row that has _ng_failure_class.", _run),
)  # fmt: skip
"""In the order of the contract."""
