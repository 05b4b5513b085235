"""What came back from ``/run`` as a row to keep: a result, a failure that the other side declared, or one seen here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from pydantic import ValidationError

from gymkit.collect.plan import Plan
from gymkit.errors import BadStatus, InvalidReply, ServerError
from gymkit.servers.route import Reply
from gymkit.wire import codec
from gymkit.wire.episodes import EpisodeFailure, EpisodeResponse
from gymkit.wire.problems import wire_error
from gymkit.wire.tasks import is_materialized

BUSY: Final = frozenset({429, 502, 503, 504})
"""Statuses that say the rollout did not run."""

EXCERPT: Final = 2000
"""Characters kept of a body that is no result."""

_COPIED = ("agent_ref", "task_source", "skills_ref", "_ng_attempt_index", "_ng_rollout_id")
_OURS = ("_ng_", "ng_trajectory", "ng_model_call_capture", "ng_perf")


def request_of(row: Mapping[str, Any]) -> bytes:
    """The body of ``/run`` for a planned rollout: the row itself, or an episode for a row in materialized form."""
    if is_materialized(row):
        task = {"task_id": row["task_id"], "task_input": row["task_input"]}
        return codec.dumps({"episode_id": _episode_id(row), "task": task})
    return codec.dumps(_task_fields(row))


def row_of(row: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
    """The row in ``reply``; a failure comes with the task's fields, so that it can be a task again.

    Raises ServerError for a reply that holds no row.
    """
    body = reply.expect_ok().json_object()
    if "episode_id" in body and ("result" in body or "failure" in body):
        body = _episode_row(row, body, reply)
    reward = body.get("reward")
    if not (reward is None or is_number(reward)):
        raise InvalidReply(
            f"{reply.url} answered with a reward that is no number: {reward!r:.60}", server=reply.server, url=reply.url
        )
    return {**_task_fields(row), **body} if "_ng_failure_class" in body else body


def failure_of(row: Mapping[str, Any], error: BaseException, reply: Reply | None) -> dict[str, Any]:
    """The failure row for a call that ended in ``error``, again with the task's fields."""
    failure = _task_fields(row)
    status = reply.status if reply is not None else None
    failure["_ng_failure_class"] = "agent_request_failed" if status is None or status in BUSY else "agent_run_error"
    failure["_ng_failure_type"] = type(error).__name__
    failure["_ng_failure_message"] = str(error) or type(error).__name__
    if reply is not None:
        failure["_ng_failure_http_status"] = reply.status
        text = reply.text
        failure["_ng_failure_response_body"] = text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"
    failure["failure_kind"] = _kind(error, reply)
    return failure


def stamped(
    row: Mapping[str, Any], result: dict[str, Any], plan: Plan, started_at: float, seconds: float
) -> dict[str, Any]:
    """``result`` with the stamps of the planned rollout ``row``, its start in unix seconds and its duration."""
    result["_ng_task_index"] = row["_ng_task_index"]
    result["_ng_rollout_index"] = row["_ng_rollout_index"]
    for name in _COPIED:
        if name in row:
            result[name] = row[name]
    target = plan.target_of(row)
    result["_ng_environment_server"] = target.environment_server
    result["_ng_result_type"] = target.result_type
    told = result.get("gymkit")
    facts = told if isinstance(told, dict) else {}
    result["gymkit"] = {**facts, "run": plan.run, "started_at": started_at, "seconds": seconds}
    return result


def is_number(value: object) -> TypeGuard[float]:
    """Whether ``value`` is a JSON number (true and false are none)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _task_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "gymkit"}


def _kind(error: BaseException, reply: Reply | None) -> str:
    """The cause to group by: what the server's own error body names, else what was seen from here."""
    if isinstance(error, BadStatus) and reply is not None:
        try:
            named = codec.loads(reply.body)["kind"]
        except (ValueError, TypeError, LookupError):
            named = None
        if isinstance(named, str) and named:
            return named
    return error.kind if isinstance(error, ServerError) else "agent_error"


def _episode_id(row: Mapping[str, Any]) -> dict[str, Any]:
    name = row.get("_ng_rollout_id") or f"{row['_ng_task_index']}-{row['_ng_rollout_index']}"
    return {"rollout_id": name, "attempt": row.get("_ng_attempt_index", 0)}


def _episode_row(row: Mapping[str, Any], body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """The flat row in an environment server's episode reply."""
    try:
        episode = EpisodeResponse.model_validate(body)
    except ValidationError as error:
        raise InvalidReply(
            f"{reply.url}: {wire_error('the episode reply', error, body)}", server=reply.server, url=reply.url
        ) from error
    if episode.episode_id.model_dump() != _episode_id(row):
        told = episode.episode_id.capture_key
        raise InvalidReply(f"{reply.url} answered for the episode {told!r}", server=reply.server, url=reply.url)
    named = {"_ng_task_id": episode.task_id.model_dump()}
    if episode.failure is not None:
        return {**named, **_declared(episode.failure)}
    result = body["result"]
    if taken := [key for key in result if key.startswith(_OURS)]:
        raise InvalidReply(f"{reply.url} answered with reserved fields: {taken}", server=reply.server, url=reply.url)
    return {**result, **named}


def _declared(failure: EpisodeFailure) -> dict[str, Any]:
    row: dict[str, Any] = {
        "_ng_failure_class": "environment_server_failed",
        "_ng_failure_terminal": failure.terminal,
        "_ng_failure_message": failure.failure_reason,
        "_ng_failure_stage": failure.stage,
        "_ng_failure_partial_response": failure.partial_response,
        "failure_kind": failure.failure_kind,
    }
    return {key: value for key, value in row.items() if value is not None}
