"""What a resources server is held to: its sessions, its tools' errors, its verdict."""

from __future__ import annotations

import math
from typing import Any, Final

from gymkit.servers.route import CookieJar, Reply
from gymkit.testing.conformance.rule import ALIVE, Broken, NotApplicable, Peer, Rule, body_of, expect, refused, same
from gymkit.wire.tasks import flat_task, is_materialized

_RESPONSE: Final = {
    "id": "resp_conformance",
    "created_at": 0.0,
    "model": "conformance",
    "object": "response",
    "output": [
        {
            "type": "message",
            "id": "msg_0",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "", "annotations": []}],
        }
    ],
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
}
"""The answer of an agent that did nothing."""


def _row(peer: Peer) -> dict[str, Any]:
    task = peer.task
    return flat_task(task["task_input"]) if is_materialized(task) else task


def _seed(peer: Peer, handle: str | None = None) -> dict[str, Any]:
    fields = {key: value for key, value in _row(peer).items() if key != "responses_create_params"}
    return {"resources_session_id": handle or peer.fresh("resources"), **_episode(), "task_data": fields}


def _episode() -> dict[str, Any]:
    return {"episode_id": {"rollout_id": "0-0", "attempt": 0}, "task_id": {"taskset": "conformance", "task_id": "0"}}


def _close(handle: str) -> dict[str, Any]:
    return {"resources_session_id": handle, "episode_id": _episode()["episode_id"]}


def _cookie(reply: Reply) -> None:
    if not any(value for value in reply.cookies().values()):
        raise Broken(f"{reply.url} was answered without a session cookie")


async def _typed(peer: Peer, jar: CookieJar | None = None) -> tuple[dict[str, Any], CookieJar]:
    """Seed in the typed form. Raises NotApplicable where only rows are taken, which is one rule's business."""
    seed, jar = _seed(peer), CookieJar() if jar is None else jar
    reply = await peer.post("/seed_session", seed, jar)
    if reply.status != 200 or body_of(reply).get("resources_session_id") is None:
        raise NotApplicable("it takes rows only, so an agent's /run is the only way in")
    return seed, jar


async def _row_seed(peer: Peer) -> None:
    reply = expect(await peer.post("/seed_session", _row(peer), CookieJar()), 200, of="a seed with a task row")
    body_of(reply)
    _cookie(reply)


async def _typed_seed(peer: Peer) -> None:
    seed = _seed(peer)
    reply = expect(await peer.post("/seed_session", seed, CookieJar()), 200, of="a typed seed")
    same(reply, "resources_session_id", seed["resources_session_id"])
    _cookie(reply)


async def _repeated_seed(peer: Peer) -> None:
    seed, jar = await _typed(peer)
    for cookies in (jar, CookieJar()):
        again = expect(await peer.post("/seed_session", seed, cookies), 200, of="a repeated seed")
        same(again, "resources_session_id", seed["resources_session_id"])


async def _closed(peer: Peer) -> None:
    seed, jar = await _typed(peer)
    handle = seed["resources_session_id"]
    for cookies in (jar, jar, CookieJar()):
        same(expect(await peer.post("/close_session", _close(handle), cookies), 200, of="a close"), *_named(handle))


def _named(handle: str) -> tuple[str, str]:
    return "resources_session_id", handle


async def _closed_unknown(peer: Peer) -> None:
    handle = peer.fresh("resources")
    reply = await peer.post("/close_session", _close(handle), CookieJar())
    same(expect(reply, 200, of="a close of a session that was never seeded"), *_named(handle))


async def _seed_after_close(peer: Peer) -> None:
    seed, _ = await _typed(peer)
    if (await peer.get("/reverify_mode")).body == b'"stateless"':
        raise NotApplicable("it keeps no state")
    await peer.post("/close_session", _close(seed["resources_session_id"]), CookieJar())
    reply = await peer.post("/seed_session", seed, CookieJar())
    if reply.status < 400:
        raise Broken("a seed that arrives after its session was closed was taken, and nobody will close it again")
    early = _seed(peer)
    await peer.post("/close_session", _close(early["resources_session_id"]), CookieJar())
    if (await peer.post("/seed_session", early, CookieJar())).status < 400:
        raise Broken("a seed that arrives after its close was taken, and nobody will close it again")


async def _apart(peer: Peer) -> None:
    jars = [CookieJar(), CookieJar()]
    for jar in jars:
        expect(await peer.post("/seed_session", _row(peer), jar), 200, of="a seed")
    if jars[0] == jars[1]:
        raise Broken("two rollouts got the same session cookie")


async def _prefix(peer: Peer) -> None:
    jar = CookieJar()
    expect(await peer.post("/ng-rollout/0-0/seed_session", _row(peer), jar), 200, of="a seed under /ng-rollout/0-0")


async def _every_cookie(peer: Peer) -> None:
    jar = CookieJar()
    expect(await peer.post("/seed_session", _row(peer), jar), 200, of="a seed")
    _cookie(await peer.post("/no_such_tool_of_this_server", {}, jar))


async def _unknown_tool(peer: Peer) -> None:
    jar = CookieJar()
    expect(await peer.post("/seed_session", _row(peer), jar), 200, of="a seed")
    reply = await peer.post("/no_such_tool_of_this_server", {}, jar)
    if reply.status >= 500 or not reply.body:
        raise Broken(f"a call of a tool that is not there was answered {reply.status} {reply.text[:80]!r}")


async def _verdict(peer: Peer) -> None:
    jar = CookieJar()
    expect(await peer.post("/seed_session", _row(peer), jar), 200, of="a seed")
    rewards = []
    for _ in range(2):
        reply = expect(await peer.post("/verify", {**_row(peer), "response": _RESPONSE}, jar), 200, of="a verify")
        body = body_of(reply)
        reward = body.get("reward")
        if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
            raise Broken(f"the verdict has the reward {reward!r:.60}, which is no finite number")
        if not isinstance(body.get("mask_sample", False), bool):
            raise Broken(f"mask_sample is {body['mask_sample']!r:.60}, not true or false")
        if lacking := [key for key in ("response", "responses_create_params") if key not in body]:
            raise Broken(f"the verdict does not echo {' and '.join(lacking)}")
        rewards.append(reward)
    if rewards[0] != rewards[1]:
        raise Broken(f"the same response got the reward {rewards[0]} and then {rewards[1]}")


async def _bad_response(peer: Peer) -> None:
    jar = CookieJar()
    expect(await peer.post("/seed_session", _row(peer), jar), 200, of="a seed")
    refused(await peer.post("/verify", {**_row(peer), "response": {"output": "x"}}, jar), of="a verify of no Response")


async def _metrics(peer: Peer) -> None:
    rows = [{"reward": reward, "_ng_task_index": 0, "_ng_rollout_index": index} for index, reward in enumerate((1, 0))]
    reply = expect(await peer.post("/aggregate_metrics", {"verify_responses": rows}), 200, of="/aggregate_metrics")
    body = body_of(reply)
    if lacking := [key for key in ("agent_metrics", "key_metrics", "group_level_metrics") if key not in body]:
        raise Broken(f"/aggregate_metrics answers without {', '.join(lacking)}")


_TWICE = "A caller that lost a reply sends its request again."

RULES: tuple[Rule, ...] = (
    ALIVE,
    Rule("seed by row", "An agent's /run seeds with the whole task row.",
         "Take the row on POST /seed_session and set a session cookie.", _row_seed),
    Rule("typed seed", "An environment server seeds with names and the task's fields, and needs both back.",
         "Take resources_session_id, episode_id, task_id, task_data; echo the id, set a session cookie.", _typed_seed),
    Rule("repeated seed", _TWICE, "Answer the same seed as the first time, and reset nothing.", _repeated_seed),
    Rule("repeated close", _TWICE, "Answer a close of a closed session with 200 and its id.", _closed),
    Rule("close of unknown", "A seed may have been lost on its way, and its close comes all the same.",
         "Answer 200 with the id.", _closed_unknown),
    Rule("seed after close", "A seed that was held up would open a session that nobody closes.",
         "Remember closed names for a while and refuse their seeds (409).", _seed_after_close),
    Rule("sessions apart", "Rollouts run at the same time.", "Give each rollout a cookie of its own.", _apart),
    Rule("prefix", "Callers put /ng-rollout/<id> before any path.", "Take the prefix off.", _prefix),
    Rule("cookie on every reply", "A caller keeps only the cookies of the latest reply.",
         "Send the session cookie with every reply.", _every_cookie),
    Rule("unknown tool", "An agent reads what went wrong and goes on.",
         "Answer with a 4xx and a sentence, not with a 5xx or nothing.", _unknown_tool),
    Rule("verdict", "The reward is what a rollout is for, and the row is made of the reply.",
         "Answer /verify with responses_create_params, response, a finite reward and mask_sample, each time the same.",
         _verdict),
    Rule("no verdict on nonsense", "A reward for something that is no trajectory is no measurement.",
         "Refuse a response that is no Responses API object (422).", _bad_response),
    Rule("metrics", "A run ends with its aggregate.",
         "Answer /aggregate_metrics with agent_metrics, key_metrics, group_level_metrics.", _metrics),
)  # fmt: skip
"""In the order of the contract."""
