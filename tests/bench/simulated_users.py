"""What our servers cost beyond User Sim's own runtime: CPU an episode at 100 concurrent ones, and what stays behind.

Run it: python -m tests.bench.simulated_users [episodes]
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
import time
from typing import Any

from gymkit.testing import usersim as scripted
from gymkit.testing.agent import answer
from gymkit.usersim.chat import message_of
from gymkit.usersim.package import PackageRuntime
from gymkit.usersim.runtime import Spoken
from gymkit.usersim.task import materialized
from tests.usersim.house import NAMES, House, row_of

CONCURRENT = 100


def _row() -> dict[str, Any]:
    return row_of("general_open_ended", max_turns=5)


async def bare() -> int:
    """One episode of the runtime alone, its models plain functions; returns how often one spoke."""

    async def simulate(messages: Any, parameters: Any) -> Spoken:
        raise AssertionError("no tools here")

    row = _row()["resolved_row"]
    runtime = await PackageRuntime.open(row, names=NAMES, budgets={}, simulate=simulate, embedder=None)
    brains = {"user": _talkative, "assistant": scripted.assistant(), "judge": scripted.support()}
    spoken, count = None, 0
    while (activation := await runtime.advance(spoken)) is not None:
        items = [{"type": "message", "role": each["role"], "content": each["content"]} for each in activation.messages]
        brain = brains.get(activation.role, brains["judge"])
        spoken = Spoken(activation.id, message_of({"output": brain({"input": items})}))
        count += 1
    await runtime.finalize()
    await runtime.close()
    return count


async def hosted(house: House, number: int) -> None:
    """One episode through all of our servers, verdict included."""
    body = {"episode_id": {"rollout_id": f"e-{number}"}, "task": materialized(_row())}
    told = (await house.route.post("/run", body)).expect_ok().json_object()
    assert told["failure"] is None, told["failure"]


async def measure(total: int) -> None:
    """Print both."""
    house = House(user=_talkative)
    await hosted(house, 0)
    print(f"a model speaks {await bare()} times in the runtime alone")
    began = time.process_time()
    await asyncio.gather(*(bare() for _ in range(CONCURRENT)))
    alone = (time.process_time() - began) / CONCURRENT
    began, wall = time.process_time(), time.perf_counter()
    for start in range(0, total, CONCURRENT):
        await asyncio.gather(*(hosted(house, start + number) for number in range(CONCURRENT)))
        if not start:
            first = _resident()
    ours = (time.process_time() - began) / total
    gc.collect()
    print(f"runtime alone {alone * 1000:.1f} ms CPU, through our servers {ours * 1000:.1f} ms, verdict included")
    print(f"{total} episodes in {time.perf_counter() - wall:.1f} s; {_resident() - first:+.1f} MB since the first 100")
    print(f"sessions left: {len(house.resources.sessions)}, tombstones {len(house.resources._closed)}")


def _talkative(params: dict[str, Any]) -> Any:
    return [answer("Okay, and what would you do next in my place?")]


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
