"""The run's aggregate metrics: the environment computes them from the stored rows, less their conversations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from gymkit.collect.plan import Target
from gymkit.collect.resume import key_of
from gymkit.collect.store import Store
from gymkit.errors import ServerError
from gymkit.servers.route import Route
from gymkit.wire import codec

log = logging.getLogger("gymkit")

TIMEOUT_SECS: Final = 600.0
"""Seconds that computing the metrics may take."""

_LEFT_OUT: Final = frozenset(
    {"response", "responses_create_params", "ng_agent_observations", "ng_model_call_capture", "ng_trajectory", "gymkit"}
)
_KEPT_OF_RESPONSE: Final = ("usage", "incomplete_details")
_PARTS: Final = ("agent_metrics", "key_metrics", "group_level_metrics")


async def write_metrics(store: Store, target: Target, route: Route) -> None:
    """Have the metrics computed by ``route`` and write them beside the rollouts; without results, there are none.

    Metrics are worth less than rows: a server that cannot compute them costs a warning, and no file is written.
    """
    body = await asyncio.to_thread(_payload, store)
    if body is None:
        return
    try:
        reply = (await route.post("/aggregate_metrics", body, timeout=TIMEOUT_SECS)).expect_ok().json_object()
    except ServerError as error:
        log.warning("no aggregate metrics: %s", error)
        return
    if lacking := [part for part in _PARTS if part not in reply]:
        log.warning("no aggregate metrics: %s answered without %s", route.name, ", ".join(lacking))
        return
    store.write_metrics([_group(target, reply)])


def stripped(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as the metrics need it: without the conversation, with what it cost."""
    slim = {key: value for key, value in row.items() if key not in _LEFT_OUT}
    response = row.get("response")
    if isinstance(response, dict):
        slim["response"] = {key: response[key] for key in _KEPT_OF_RESPONSE if key in response}
    return slim


def _payload(store: Store) -> bytes | None:
    """The request's body, rows in the order of task and rollout; each row is in memory only as its stripped bytes."""
    rows: dict[tuple[int, int], bytes] = {}
    for line in store.results():
        key = key_of(line.row)
        if key is not None and key not in rows:
            rows[key] = codec.dumps(stripped(line.row))
    if not rows:
        return None
    return b'{"verify_responses":[' + b",".join(rows[key] for key in sorted(rows)) + b"]}"


def _group(target: Target, reply: Mapping[str, Any]) -> dict[str, Any]:
    group = {"agent_ref": {"name": target.agent}, "_ng_environment_server": target.environment_server}
    group |= {part: reply[part] for part in _PARTS}
    group["repeat_level_metrics"] = reply.get("repeat_level_metrics", [])
    if reply.get("perf_summary") is not None:
        group["perf_summary"] = reply["perf_summary"]
    return group
