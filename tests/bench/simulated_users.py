"""What our servers cost beyond User Sim's own work, and what episodes leave behind.

``overhead``: 100 concurrent five-turn episodes on instant scripted models, in one process, by CPU time (the wall clock
of a shared machine says nothing). The package's runtime and its evaluator are driven bare, with the models as plain
function calls, on the same row with the same replies; then everything goes through our servers. The evaluator is
counted on both sides, so the difference is what we add: sessions, agents, model servers, the wire format with all its
checks, records of every call, audit and verdict. Waves of both kinds take turns.

``leaks``: so many episodes of both runtimes, and what is there afterwards.

Run it: python -m tests.bench.simulated_users [overhead|leaks] [episodes]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from gymkit.servers.route import Route
from gymkit.testing import usersim as scripted
from gymkit.usersim.chat import items_of, message_of, params_of
from gymkit.usersim.judge import Judge
from gymkit.usersim.package import PackageRuntime
from gymkit.usersim.package_evaluator import PackageEvaluator
from gymkit.usersim.runtime import Spoken
from tests.usersim.footprint import growth, insisting, package_house, scenario_house
from tests.usersim.house import NAMES, House, model

CONCURRENT = 100
WAVES = 3
BRAINS = {"user": scripted.user, "assistant": scripted.assistant(), "judge": scripted.support()}


class Bare(Judge):
    """A judge that is a function call away."""

    async def _post(self, messages: list[Any], parameters: Any) -> Spoken:
        return Spoken("", _said(BRAINS["judge"]({**params_of(parameters), "input": items_of(messages)})))


def _said(output: Any) -> dict[str, Any]:
    items = [{"type": "message", "role": "assistant", "content": output}] if isinstance(output, str) else output
    return message_of({"output": items})


async def _simulate(messages: Any, parameters: Any) -> Spoken:
    raise AssertionError("no tools here")


async def talk(row: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """One episode of the runtime alone: its result, and how often a model spoke."""
    runtime = await PackageRuntime.open(row, names=NAMES, budgets={}, simulate=_simulate, embedder=None)
    brains = {**BRAINS, "user": insisting}
    spoken, count = None, 0
    while (activation := await runtime.advance(spoken)) is not None:
        items = [{"type": "message", "role": each["role"], "content": each["content"]} for each in activation.messages]
        brain = brains.get(activation.role, brains["judge"])
        spoken = Spoken(activation.id, _said(brain({"input": items})))
        count += 1
    result = await runtime.finalize()
    await runtime.close()
    return result, count


async def judged(row: dict[str, Any], result: dict[str, Any]) -> None:
    """The package's evaluator alone."""
    judge = Bare(Route.to_app("judge", model("unused", [])), "judge", 5.0)
    evaluation = await PackageEvaluator().evaluate(row, result, judge)
    assert evaluation.quality == 1.0


async def hosted(house: House, row: dict[str, Any], number: int) -> None:
    """One episode through all of our servers, verdict included."""
    told = await house.arun(row, name=f"e-{number}")
    assert told["failure"] is None, told["failure"]
    assert told["result"]["reward"] == 1.0


async def cpu(work: Callable[[int], Awaitable[Any]]) -> float:
    """CPU milliseconds an episode of ``work`` takes, of 100 at once."""
    began = time.process_time()
    await asyncio.gather(*(work(number) for number in range(CONCURRENT)))
    return (time.process_time() - began) / CONCURRENT * 1000


async def overhead(waves: int) -> None:
    """Print what we add to an episode."""
    house, row = package_house()
    resolved = row["resolved_row"]
    result, spoken = await talk(resolved)
    await judged(resolved, result)
    await hosted(house, row, 0)
    runtime, evaluator, ours = [], [], []
    for _ in range(waves):
        runtime.append(await cpu(lambda _: talk(resolved)))
        evaluator.append(await cpu(lambda _: judged(resolved, result)))
        ours.append(await cpu(lambda number: hosted(house, row, number)))
    alone, verdict, all_of_it = map(statistics.median, (runtime, evaluator, ours))
    added = all_of_it - alone - verdict
    print(f"five turns, {spoken} activations and the judge's call, {waves} waves of {CONCURRENT} at once, CPU medians")
    print(f"bare:            runtime {alone:.1f} ms + evaluator {verdict:.1f} ms = {alone + verdict:.1f} ms")
    print(f"with our servers: {all_of_it:.1f} ms, {all_of_it / (alone + verdict):.2f} times as much")
    print(f"overhead:        {added:.1f} ms an episode, {added / (spoken + 1):.2f} ms a call")


async def leaks(episodes: int) -> None:
    """Print what is left of so many episodes."""
    for name, opened, count in (
        ("built-in runtime", scenario_house, episodes),
        ("usersim", package_house, max(1, episodes * 2 // 5)),
    ):
        house, row = opened()
        before, after = await growth(house, row, count)
        grown = (after.traced - before.traced) / count
        print(f"{count} episodes of the {name}: {grown:.0f} bytes an episode")
        for field in ("sessions", "receipts", "tombstones", "tasks", "handles"):
            print(f"  {field:<11}{getattr(before, field):>6} before, {getattr(after, field):>6} after")


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else "overhead"
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    asyncio.run(leaks(number or 1000) if kind == "leaks" else overhead(number or WAVES))
