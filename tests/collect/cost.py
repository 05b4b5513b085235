"""What the collector itself costs for each rollout: ``python -m tests.collect.cost [ROLLOUTS]``.

Runs rollouts with rows of 3 kB against an app in this process that answers with bytes made before, and takes away what
the same calls of the same route cost alone. CPU time, the best of five.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from gymkit.collect.collector import collect
from gymkit.collect.reply import request_of
from gymkit.collect.store import Store
from gymkit.servers.route import Route
from gymkit.wire import codec
from tests.collect.world import plan_of, routes, task

TOOL = {"type": "function", "name": "increment_counter", "parameters": {"type": "object", "properties": {}}}
PARAMS = {**task("add 1 then add 2 then get the count")["responses_create_params"], "tools": [TOOL] * 6}
CALL = {"type": "function_call", "call_id": "c", "id": "f", "name": "increment_counter", "arguments": '{"count": 1}'}
PAIR = [CALL, {"type": "function_call_output", "call_id": "c", "output": '{"success":true}'}]
RESPONSE = {"id": "r", "object": "response", "model": "m", "output": PAIR * 12, "usage": {"input_tokens": 1}}
ANSWER = codec.dumps({"responses_create_params": PARAMS, "response": RESPONSE, "reward": 1.0, "mask_sample": False})


async def app(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": ANSWER})


async def collected(rollouts: int, folder: str) -> float:
    plan = plan_of([{"responses_create_params": PARAMS}], repeats=rollouts)
    with Store(Path(folder, "r.jsonl")) as store:
        began = time.process_time()
        await collect(plan, store, routes(Route.to_app("environment", app)), aggregate=False)
        return time.process_time() - began


async def called(rollouts: int, folder: str) -> float:
    route = Route.to_app("environment", app)
    body = request_of(next(plan_of([{"responses_create_params": PARAMS}]).rows()))
    began = time.process_time()
    for _ in range(rollouts):
        await route.post("/run", body, timeout=60.0)
    return time.process_time() - began


def best(measure: Callable[[int, str], Awaitable[float]], rollouts: int) -> float:
    """Microseconds a rollout."""
    with tempfile.TemporaryDirectory() as folder:
        return min(asyncio.run(measure(rollouts, folder)) for _ in range(5)) / rollouts * 1e6  # type: ignore[arg-type]


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    whole, calls = best(collected, count), best(called, count)
    print(f"reply of {len(ANSWER)} bytes, {count} rollouts, microseconds of CPU each:")
    print(f"  whole {whole:.0f}, the calls alone {calls:.0f}, the collector {whole - calls:.0f}")
