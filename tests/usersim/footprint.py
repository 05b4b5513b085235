"""What episodes leave behind in a process: sessions, receipts, tasks, open files and memory."""

from __future__ import annotations

import asyncio
import gc
import itertools
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymkit.testing.agent import answer, call, outputs
from gymkit.usersim.scenario import REVISION, Scenario, Talk
from gymkit.usersim.scenario_evaluator import ScenarioEvaluator
from gymkit.usersim.scenario_runtime import ScenarioStage
from tests.usersim.house import House, row_of

RECEIPTS_ARE_KEPT = 1e-6
"""Seconds, so that the close of one episode sweeps away what the one before it left, and nobody has to wait."""

ROOM = 2_000
"""Bytes that an episode may leave: the names of its session, which the resources server knows for a while."""

SLACK = 100_000
"""Bytes that come once, whatever the number of episodes: caches of the interpreter and of libraries. The rows of
the episodes of one test have ten times as many, at least."""

_HANDLES = Path("/proc/self/fd")
_numbers = itertools.count()


@dataclass(frozen=True)
class Footprint:
    """What is there at one moment."""

    sessions: int
    """Open sessions of the agents and of the resources server."""
    receipts: int
    """Replies that agents keep for a close that is repeated."""
    tombstones: int
    """Names of closed sessions that the resources server remembers, for the time that a session may last."""
    tasks: int
    """Tasks of the loop."""
    handles: int
    """Open file handles; 0 where the system does not list them."""
    traced: int
    """Bytes that were taken since tracemalloc was started, and are still held."""

    @classmethod
    def of(cls, house: House) -> Footprint:
        gc.collect()
        agents, resources = house.agents, house.resources
        return cls(
            sessions=len(resources.sessions) + len(resources._by_handle) + sum(len(agent.sessions) for agent in agents),
            receipts=sum(len(agent.sessions._receipts) for agent in agents),
            tombstones=len(resources._closed),
            tasks=len(asyncio.all_tasks()),
            handles=opened_handles(),
            traced=tracemalloc.get_traced_memory()[0],
        )


def opened_handles() -> int:
    """How many file handles this process has open; 0 where the system does not list them."""
    gc.collect()
    return len(list(_HANDLES.iterdir())) if _HANDLES.exists() else 0


def lookup(thing: str) -> str:
    """Look a thing up."""
    return f"{thing} is in aisle 4"


def found(talk: Talk) -> bool:
    return bool(talk.called("lookup"))


def helpful(params: dict[str, Any]) -> Any:
    return [answer("It is in aisle 4.")] if outputs(params) else [call("lookup", "c1", thing="tea")]


SCENARIO = Scenario(persona="Maya, in a hurry", goal="find the tea", tools=[lookup], checks=[found], max_turns=3)


def insisting(_: dict[str, Any]) -> str:
    """A user who never is done."""
    return "And where is the next thing on my list, please?"


def package_house() -> tuple[House, dict[str, Any]]:
    """A house for the package's runtime, and a row of it: five turns."""
    return House(user=insisting, receipts=RECEIPTS_ARE_KEPT), row_of("general_open_ended", max_turns=5)


def scenario_house(user: Any = insisting) -> tuple[House, dict[str, Any]]:
    """A house for the built-in runtime, and a row of it: three turns and a tool."""
    house = House(
        user=user,
        assistant=helpful,
        stage=ScenarioStage([SCENARIO]),
        evaluator=ScenarioEvaluator(),
        resources_config={"usersim_revision": REVISION},
        receipts=RECEIPTS_ARE_KEPT,
    )
    return house, SCENARIO.row()


async def play(house: House, row: Mapping[str, Any], episodes: int, at_once: int = 20) -> None:
    """Play ``row`` so many times; every one of them has to be scored."""
    for start in range(0, episodes, at_once):
        count = min(at_once, episodes - start)
        for told in await asyncio.gather(*(house.arun(row, name=f"e-{next(_numbers)}") for _ in range(count))):
            assert told["failure"] is None, told["failure"]
            assert told["result"]["mask_sample"] is False


async def growth(house: House, row: Mapping[str, Any], episodes: int) -> tuple[Footprint, Footprint]:
    """What is there after a few episodes, which fill what is kept on purpose, and after ``episodes`` more."""
    await play(house, row, 20)
    tracemalloc.start(1)
    try:
        await play(house, row, 1)  # the last of a wave sweeps the receipts of the others
        before = Footprint.of(house)
        await play(house, row, episodes - 1)
        await play(house, row, 1)
        return before, Footprint.of(house)
    finally:
        tracemalloc.stop()
        await house.environment.aclose()
