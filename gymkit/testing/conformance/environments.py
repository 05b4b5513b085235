"""What an environment server is held to: an episode in, a result or a failure out, whatever happens."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import ValidationError

from gymkit.testing.conformance.rule import ALIVE, Broken, NotApplicable, Peer, Rule, body_of, expect, refused
from gymkit.wire.episodes import EpisodeResponse
from gymkit.wire.problems import sentences
from gymkit.wire.tasks import is_materialized

RESERVED = ("ng_trajectory", "ng_model_call_capture", "ng_perf")
TOGETHER = 8
"""Episodes that are started at once."""


def _request(peer: Peer, rollout: str | None = None, attempt: int = 0) -> dict[str, Any]:
    task = peer.task
    if not is_materialized(task):
        raise NotApplicable("the task is a flat row, so the server was taken for one that answers flat")
    named = {"task_id": task["task_id"], "task_input": task["task_input"]}
    return {"episode_id": {"rollout_id": rollout or peer.fresh("episode"), "attempt": attempt}, "task": named}


async def _played(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    body = body_of(expect(await peer.post("/run", request), 200, of="an episode"))
    for key in ("episode_id", "task_id"):
        asked = request["episode_id"] if key == "episode_id" else request["task"]["task_id"]
        if body.get(key) != asked:
            raise Broken(f"the reply is for the {key} {body.get(key)!r:.80}, and {asked!r:.80} was asked")
    return body


async def _episode(peer: Peer) -> None:
    body = await _played(peer, _request(peer))
    try:
        EpisodeResponse.model_validate(body)
    except ValidationError as error:
        raise Broken(f"the reply is not an episode's: {'; '.join(sentences(error, body)[:3])}") from error
    if missing := [key for key in ("result", "failure") if key not in body]:
        raise Broken(f"the reply lacks the key {missing[0]}, which is null where it does not apply")


async def _attempts(peer: Peer) -> None:
    rollout = peer.fresh("episode")
    for attempt in (0, 1, 1):
        await _played(peer, _request(peer, rollout, attempt))


async def _result(peer: Peer) -> None:
    result = (await _played(peer, _request(peer)))["result"]
    if result is None:
        raise NotApplicable("the episode failed, so there is no result to look at")
    if taken := [key for key in result if key.startswith("_ng_") or key in RESERVED]:
        raise Broken(f"the result has keys that only a collector writes: {taken}")
    if isinstance(result.get("reward"), bool) or not isinstance(result.get("reward"), int | float):
        raise Broken("the result has no reward, so the rollout would be stored and not counted")


async def _together(peer: Peer) -> None:
    requests = [_request(peer) for _ in range(TOGETHER)]
    await asyncio.gather(*[_played(peer, request) for request in requests])


async def _shapes(peer: Peer) -> None:
    request = _request(peer)
    for what, body in {
        "with a key too many": {**request, "something": 1},
        "without a task": {"episode_id": request["episode_id"]},
        "with a rollout id that looks like a retry": {**request, "episode_id": {"rollout_id": "0-0-a1"}},
        "with a negative attempt": {**request, "episode_id": {"rollout_id": "0-0", "attempt": -1}},
        "that is no JSON": b"{",
    }.items():
        refused(await peer.post("/run", body), of=f"an episode {what}")


async def _no_cookie(peer: Peer) -> None:
    reply = await peer.post("/run", _request(peer))
    if reply.cookies():
        raise Broken(f"the reply sets the cookies {', '.join(reply.cookies())}")


async def _flat(peer: Peer) -> None:
    task = peer.task
    if is_materialized(task):
        raise NotApplicable("the task is an episode's, so the server was taken for one that plays episodes")
    stamps = {"_ng_task_index": 0, "_ng_rollout_index": 0}
    body = body_of(expect(await peer.post("/run", {**task, **stamps}), 200, of="a flat row"))
    if "_ng_failure_class" not in body and not isinstance(body.get("reward"), int | float):
        raise Broken("the row has neither a reward nor _ng_failure_class")


async def _metrics(peer: Peer) -> None:
    rows = [{"reward": 1.0, "_ng_task_index": 0, "_ng_rollout_index": 0}]
    reply = expect(await peer.post("/aggregate_metrics", {"verify_responses": rows}), 200, of="/aggregate_metrics")
    if lacking := [key for key in ("agent_metrics", "key_metrics", "group_level_metrics") if key not in body_of(reply)]:
        raise Broken(f"/aggregate_metrics answers without {', '.join(lacking)}")


RULES: tuple[Rule, ...] = (
    ALIVE,
    Rule("episode", "A collector files a result as a row and a failure as a row of the sidecar.",
         "Answer 200 with episode_id, task_id, result and failure, one of them null; failure has no nulls.",
         _episode),
    Rule("attempts", "A retry has the same rollout id, and a lost reply is asked for again.",
         "Play the episode whatever was played before, and answer with the ids that were asked.", _attempts),
    Rule("result", "What a collector writes itself must not come from outside.",
         "Return the verifier's reply with its reward, and no _ng_ keys.", _result),
    Rule("together", "Episodes run at the same time.", "Keep their state apart.", _together),
    Rule("shapes", "What is not of the contract is refused before anything is opened.", "Answer 422.", _shapes),
    Rule("no cookie", "An environment server keeps nothing between calls.", "Set none.", _no_cookie),
    Rule("flat row", "A collector that knows nothing of episodes sends the task row to /run.",
         "Answer 200 with the verified row, or with a row that has _ng_failure_class.", _flat),
    Rule("metrics", "A run ends with its aggregate.",
         "Answer /aggregate_metrics, or forward it to the resources server.", _metrics),
)  # fmt: skip
"""In the order of the contract."""
