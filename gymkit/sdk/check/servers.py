"""The report on a resources, agent or environment server: a row for each rule of ``testing.conformance``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.sdk import bridge
from gymkit.sdk.check.excerpt import line
from gymkit.sdk.check.finding import Finding
from gymkit.sdk.check.report import Report
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.route import Route
from gymkit.testing.conformance import RULES, Broken, NotApplicable, Peer, Rule
from gymkit.wire.tasks import is_materialized, materialized

KINDS = tuple(RULES)
"""The kinds of server that have rules."""


async def acheck_server(
    kind: str,
    url: str,
    task: Mapping[str, Any] | None = None,
    *,
    environment: str = "",
    timeout: float = 30.0,
    budget: float = 120.0,
) -> Report:
    """Hold the server at ``url`` to every rule of its ``kind`` (``resources``, ``agent`` or ``environment``).

    Parameters
    ----------
    task:
        One task row, for the rules that need one; ``environment`` names where it comes from. A flat row is put into
        the form of an episode where an environment server refuses it as it is.
    timeout:
        Seconds that one call may take.
    budget:
        Seconds that the whole check may take; rules that were not reached by then are skipped.

    Raises ConfigError for a kind or a URL that cannot be used.
    """
    if kind not in RULES:
        raise ConfigError(f"check: there is no kind {kind!r}; {nearest(kind, list(KINDS))}")
    if problem := base_url_problem(url):
        raise ConfigError(f"check: the URL {problem}")
    return await bridge.arun(_check(kind, url, task, environment, timeout, budget))


async def _check(
    kind: str, url: str, task: Mapping[str, Any] | None, environment: str, timeout: float, budget: float
) -> Report:
    started = time.perf_counter()
    route = Route.to_url(f"{kind} server", url)
    findings = []
    try:
        if kind == "environment" and task is not None:
            task = await _as_taken(Peer(route, task, timeout=timeout), task, environment)
        peer = Peer(route, task, timeout=timeout)
        for rule in RULES[kind]:
            left = budget - (time.perf_counter() - started)
            findings.append(await _tried(rule, peer, left) if left > 0 else _spent(rule, budget))
    finally:
        await route.aclose()
    return Report(url, environment or "no task", tuple(findings), peer.calls, time.perf_counter() - started)


async def _as_taken(peer: Peer, task: Mapping[str, Any], taskset: str) -> Mapping[str, Any]:
    """The row in the form that the environment server takes."""
    if is_materialized(task):
        return task
    try:
        reply = await peer.post("/run", {**task, "_ng_task_index": 0, "_ng_rollout_index": 0})
    except Broken:
        return task  # no answer: the first rule says so
    if reply.status != 422:
        return task
    return materialized({**task, "_ng_task_index": 0}, taskset or "check").model_dump()


async def _tried(rule: Rule, peer: Peer, left: float) -> Finding:
    try:
        async with asyncio.timeout(left):
            await rule.attempt(peer)
    except Broken as broken:
        return Finding(rule.name, "fail", line(peer.sent), line(str(broken)), rule.why, rule.fix)
    except NotApplicable as reason:
        return Finding(rule.name, "skip", "", str(reason), rule.why, "")
    except TimeoutError:
        return Finding(rule.name, "skip", line(peer.sent), "the check's time was used up", rule.why, "")
    return Finding(rule.name, "pass", line(peer.sent), line(peer.came), rule.why, "")


def _spent(rule: Rule, budget: float) -> Finding:
    return Finding(rule.name, "skip", "", f"the {budget:g} s of the check were used up", rule.why, "")
