"""gymkit's side of the benchmarks: one collection timed, and where its CPU time goes."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymkit as gk
from gymkit.sdk import bridge
from gymkit.wire import codec
from tests.bench.harness import Measurement, Service

WHO = "gymkit"
PARTS: dict[str, tuple[str, ...]] = {
    "HTTP client": ("/aiohttp/", "/yarl/", "/multidict/", "/propcache/", "/frozenlist/", "/aiosignal/"),
    "event loop and sockets": ("/asyncio/", "/selectors.py", "/socket.py", "/contextlib.py", "/concurrent/"),
    "validation": ("/gymkit/wire/", "/msgspec/", "/pydantic/"),
    "environment over ASGI": ("/gymkit/servers/", "/gymkit/resources/", "/gymkit/environments/", "/starlette/"),
    "session cookies": ("/itsdangerous/", "/http/cookies.py", "/hmac.py", "/base64.py"),
    "remote agent": ("/gymkit/agents/",),
    "files and bookkeeping": ("/gymkit/collect/", "/gymkit/sdk/", "/gymkit/views/"),
}
BUILTINS = {
    "JSON": ("orjson",),
    "event loop and sockets": ("epoll", "'_socket.socket'", "_asyncio", "run_until"),
    "files and bookkeeping": ("posix.write", "posix.ftruncate", "posix.fsync"),
}
"""Builtin functions that are a part of their own; any other counts for whoever called it."""
Function = tuple[str, int, str]


def collect(tasks: Sequence[dict[str, Any]], target: Service, in_flight: int, output: Path) -> Measurement:
    """Time ``Env.rollouts`` over ``tasks``, files and metrics included."""
    env, agent = gk.Env("counter", tasks=tasks), gk.RemoteAgent(target.url, concurrency=in_flight)
    served, used, start = target.cpu(), time.process_time(), time.perf_counter()
    env.rollouts(agent, output=output, progress=False)
    seconds = time.perf_counter() - start
    cpu = {"gymkit": time.process_time() - used, "service": target.cpu() - served}
    facts = [codec.loads(line)["gymkit"] for line in output.read_bytes().splitlines()]
    first = min(each["started_at"] for each in facts)
    last = max(each["started_at"] + each["seconds"] for each in facts)
    return Measurement(WHO, in_flight, len(facts), seconds, last - first, cpu)


def where_time_goes(tasks: Sequence[dict[str, Any]], target: Service, in_flight: int, output: Path) -> dict[str, float]:
    """Share of the loop thread's time by part, from a run under cProfile (which slows calls, so shares are rough)."""
    profiler = cProfile.Profile()
    bridge.run(_call(profiler.enable))
    collect(tasks, target, in_flight, output)
    bridge.run(_call(profiler.disable))
    spent = _by_part(profiler)
    spent.pop("waiting", None)
    total = sum(spent.values())
    return {part: seconds / total for part, seconds in spent.most_common()}


async def _call(function: Any) -> None:
    function()


def _by_part(profiler: cProfile.Profile) -> Counter[str]:
    spent: Counter[str] = Counter()
    found: dict[Function, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    for function, (_, _, own, _, callers) in found.items():
        if "select.epoll" in function[2] and "poll" in function[2]:
            spent["waiting"] += own
        elif part := _part(function):
            spent[part] += own
        else:
            for caller, (_, _, seconds, _) in callers.items():
                spent[_part(caller) or "other"] += seconds
    return spent


def _part(function: Function) -> str | None:
    """The part that a function belongs to; None for one that belongs to its callers."""
    path, _, name = function
    if path == "~":
        return next((part for part, marks in BUILTINS.items() if any(mark in name for mark in marks)), None)
    return next((part for part, marks in PARTS.items() if any(mark in path for mark in marks)), None)
