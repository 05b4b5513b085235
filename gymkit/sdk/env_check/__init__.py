"""A report on an environment, as a peer's environment checker would write it: one row for each rule.

The environment is tried over its own routes, so one of ours, one defined in a notebook and one behind a URL are judged
alike. Rules are judged from what was seen.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

from gymkit.errors import ConfigError
from gymkit.sdk import bridge
from gymkit.sdk.check.finding import Rule
from gymkit.sdk.check.report import Report
from gymkit.sdk.env_check import tools, verdicts
from gymkit.sdk.env_check.evidence import Evidence
from gymkit.sdk.env_check.probe import Probe, Solution

if TYPE_CHECKING:
    from gymkit.sdk.env import Env

RULES: tuple[Rule[Evidence], ...] = (*tools.RULES, *verdicts.RULES)
"""Every rule, in the order of the report."""


async def acheck(env: Env, solution: Solution | None = None, *, timeout: float = 30.0, budget: float = 60.0) -> Report:
    """Try ``env`` and report on it; ``Env.check`` says more."""
    for name, value in (("timeout", timeout), ("budget", budget)):
        if not 0 < value < math.inf:
            raise ConfigError(f"check: {name}={value!r} must be a number of seconds above 0")
    return await bridge.arun(_check(env, solution, timeout, budget))


async def _check(env: Env, solution: Solution | None, timeout: float, budget: float) -> Report:
    probe = Probe(env, solution, timeout, budget)
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
    found = tuple(rule.find(probe.seen) for rule in RULES)
    return Report(env.name, "", found, probe.calls, time.perf_counter() - started)
