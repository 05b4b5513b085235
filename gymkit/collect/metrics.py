"""The run's aggregate metrics: the environment computes them from the stored rows, less their conversations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gymkit.collect.resume import key_of
from gymkit.collect.routing import Target
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


async def write_metrics(store: Store, targets: Sequence[Target], routes: Mapping[str, Route]) -> None:
    """Have each environment server compute the metrics of its rows and write them beside the rollouts.

    Metrics are worth less than rows: a server that cannot compute them costs a warning, and it has no part in the
    file; where none can, or without results, there is no file.
    """
    bodies = await asyncio.to_thread(_payloads, store, targets)
    groups = [
        group
        for target in targets
        if target.environment_server in bodies
        and (group := await _computed(target, bodies[target.environment_server], routes[target.environment_server]))
    ]
    if groups:
        store.write_metrics(groups)


async def _computed(target: Target, body: bytes, route: Route) -> dict[str, Any] | None:
    try:
        reply = (await route.post("/aggregate_metrics", body, timeout=TIMEOUT_SECS)).expect_ok().json_object()
    except ServerError as error:
        log.warning("no aggregate metrics: %s", error)
        return None
    if lacking := [part for part in _PARTS if part not in reply]:
        log.warning("no aggregate metrics: %s answered without %s", route.name, ", ".join(lacking))
        return None
    return entry(reply, agent=target.agent, environment_server=target.environment_server)


def stripped(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as the metrics need it: without the conversation, with what it cost."""
    slim = {key: value for key, value in row.items() if key not in _LEFT_OUT}
    response = row.get("response")
    if isinstance(response, dict):
        slim["response"] = {key: response[key] for key in _KEPT_OF_RESPONSE if key in response}
    return slim


def slim(line: bytes) -> Any:
    """The row in ``line`` without what the metrics leave out, which is most of it. Raises ValueError."""
    try:
        fields = _FIELDS.decode(line)
        spent = _SPENT.decode(fields.get("response", b"null"))
    except (msgspec.MsgspecError, RecursionError):
        return codec.loads(line)
    kept = {key: codec.loads(bytes(value)) for key, value in fields.items() if key not in _LEFT_OUT}
    return kept if spent is None else {**kept, "response": msgspec.to_builtins(spent)}


class Spent(msgspec.Struct, gc=False, omit_defaults=True):
    """What is kept of a response."""

    usage: Any = msgspec.UNSET
    """Its tokens."""
    incomplete_details: Any = msgspec.UNSET
    """Why it was cut."""


_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SPENT: Final = msgspec.json.Decoder(Spent | None)


def _payloads(store: Store, targets: Sequence[Target]) -> dict[str, bytes]:
    """The requests' bodies by environment server, rows in the order of task and rollout.

    Each row is in memory only as its stripped bytes. A row that names no server, or another, is the first one's.
    """
    names = [target.environment_server for target in targets]
    servers: dict[str, dict[tuple[int, int], bytes]] = {}
    for line in store.results(slim):
        name = line.row.get("_ng_environment_server")
        rows = servers.setdefault(name if name in names else names[0], {})
        key = key_of(line.row)
        if key is not None and key not in rows:
            rows[key] = codec.dumps(stripped(line.row))
    return {
        name: b'{"verify_responses":[' + b",".join(rows[key] for key in sorted(rows)) + b"]}"
        for name, rows in servers.items()
        if rows
    }


def entry(reply: Mapping[str, Any], *, agent: str | None, environment_server: str | None) -> dict[str, Any]:
    """One object of the metrics file: a reply of ``/aggregate_metrics`` under the names of whoever ran its rows."""
    group: dict[str, Any] = {} if agent is None else {"agent_ref": {"name": agent}}
    if environment_server is not None:
        group["_ng_environment_server"] = environment_server
    group |= {part: reply[part] for part in _PARTS}
    group["repeat_level_metrics"] = reply.get("repeat_level_metrics", [])
    if reply.get("perf_summary") is not None:
        group["perf_summary"] = reply["perf_summary"]
    return group
