"""Episodes leave nothing behind; ``tests/bench/simulated_users.py`` says the same of 1,000 of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.testing import usersim as scripted
from tests.usersim.footprint import (
    ROOM,
    SCENARIO,
    SLACK,
    Footprint,
    growth,
    helpful,
    insisting,
    opened_handles,
    package_house,
    scenario_house,
)
from tests.usersim.house import House

EPISODES = {"scenario": 60, "usersim": 16}


def _left(before: Footprint, after: Footprint, episodes: int) -> None:
    assert (after.sessions, after.receipts, after.tasks) == (0, before.receipts, before.tasks)
    assert after.handles <= before.handles
    assert after.tombstones == before.tombstones + 2 * episodes, "a cookie and a handle, until their time is over"
    assert after.traced - before.traced < SLACK + ROOM * episodes


@pytest.mark.parametrize("runtime", EPISODES)
def test_nothing_is_left_of_an_episode_but_the_name_of_its_session(runtime: str) -> None:
    if runtime == "usersim":
        pytest.importorskip("usersim")
    opened: Callable[[], tuple[House, dict[str, Any]]] = {"scenario": scenario_house, "usersim": package_house}[runtime]
    house, row = opened()
    before, after = asyncio.run(growth(house, row, EPISODES[runtime]))
    _left(before, after, EPISODES[runtime])


def test_what_is_kept_would_be_seen() -> None:
    """A server that keeps its episodes is told from one that does not."""
    kept: list[Any] = []
    house, row = scenario_house()
    house.environment.listener = kept.append
    before, after = asyncio.run(growth(house, row, 20))
    assert kept
    with pytest.raises(AssertionError, match="traced"):
        _left(before, after, 20)


def test_episodes_that_fail_leave_nothing_either() -> None:
    def broken(_: dict[str, Any]) -> Any:
        raise RuntimeError("the model is gone")

    house, row = scenario_house(user=broken)

    async def go() -> Footprint:
        for number in range(3):
            told = await house.arun(row, name=f"f-{number}")
            assert told["failure"]["failure_kind"] == "usersim:user_http_status"
        return Footprint.of(house)

    left = asyncio.run(go())
    assert (left.sessions, left.tasks, left.tombstones) == (0, 1, 6)


def test_connections_to_the_models_of_an_episode_are_let_go_of(tmp_path: Path) -> None:
    """A connection that nobody closed warns when it is collected, which fails the test; sockets are counted too."""
    brains = {"user": insisting, "assistant": helpful, "support": scripted.support()}
    served = {role: gk.Model.scripted(brain).serve() for role, brain in brains.items()}
    models = {role: gk.Model(f"{each.url}/v1", role) for role, each in served.items()}
    try:
        episode = gk.UserSimEpisode(**models, runtime="scenario")
        episode.play(SCENARIO, quiet=True)
        before = opened_handles()
        for number in range(3):
            episode.rollouts([SCENARIO], output=tmp_path / f"{number}.jsonl", progress=False)
            episode.play(SCENARIO, quiet=True)
        assert settled(before) <= before
    finally:
        for each in served.values():
            each.stop()


def settled(wanted: int) -> int:
    """Open handles once they are as few as ``wanted``, or after five seconds: the servers' ends are closed by
    threads of their own, a moment after ours."""
    deadline = time.monotonic() + 5
    while (handles := opened_handles()) > wanted and time.monotonic() < deadline:
        time.sleep(0.02)
    return handles
