"""A conformance report of somebody's agent service: one row for each rule of the contract.

The service is driven by the same agent server that does the rollouts, in the given environment, over the same HTTP;
what it is sent is what a run sends. Rules are judged from what was seen, never by what the service says of itself.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

from gymkit.errors import ConfigError, GymkitError
from gymkit.sdk import bridge
from gymkit.sdk.check import answers, concurrency, conversations, mishaps, requests
from gymkit.sdk.check.evidence import Evidence
from gymkit.sdk.check.finding import Finding, Rule
from gymkit.sdk.check.probe import Probe
from gymkit.sdk.check.report import Report

if TYPE_CHECKING:
    from gymkit.sdk.agents import RemoteAgent
    from gymkit.sdk.env import Env

__all__ = ["RULES", "Finding", "Report", "Rule", "acheck"]

RULES: tuple[Rule[Evidence], ...] = (
    *answers.RULES,
    *conversations.RULES,
    *concurrency.RULES,
    *mishaps.RULES,
    *requests.RULES,
)
"""Every rule, in the order of the report."""


async def acheck(agent: RemoteAgent, env: Env | None = None, *, timeout: float = 30.0, budget: float = 60.0) -> Report:
    """Try the service of ``agent`` and report on it; ``RemoteAgent.check`` says more."""
    for name, value in (("timeout", timeout), ("budget", budget)):
        if not 0 < value < math.inf:
            raise ConfigError(f"check: {name}={value!r} must be a number of seconds above 0")
    if env is None:
        from gymkit.sdk.env import Env

        env = Env("counter")
    return await bridge.arun(_check(agent, env, timeout, budget))


async def _check(agent: RemoteAgent, env: Env, timeout: float, budget: float) -> Report:
    if not env.rows:
        raise ConfigError(f"check: {env!r} has no task to try the service with")
    probe = Probe(agent, env, timeout, budget)
    started = time.perf_counter()
    bound = asyncio.timeout(budget)
    try:
        async with bound:
            await probe.run()
    except TimeoutError:
        if not bound.expired():
            raise
        probe.seen.out_of_time = True
    finally:
        await probe.aclose()
    if fault := probe.seen.environments_fault():
        raise GymkitError(f"the service cannot be checked with {env!r}: {fault}")
    found = tuple(rule.find(probe.seen) for rule in RULES)
    return Report(agent.url, env.name, found, probe.calls, time.perf_counter() - started)
