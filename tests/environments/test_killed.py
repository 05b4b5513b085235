"""200 episodes at once, each killed at a random point: no session, no task, no file handle stays behind."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.environments.single_agent_turn import SingleAgentTurn, SingleAgentTurnConfig
from gymkit.resources.counter import Counter
from gymkit.servers.hosting import serve
from gymkit.servers.route import Route
from gymkit.testing.agent import ScriptedAgent, answer, call, outputs
from tests.environments.test_single_agent_turn import request

EPISODES = 200
FDS = Path("/proc/self/fd")


async def slow(params: dict[str, Any]) -> list[dict[str, Any]]:
    """Four calls and an answer, each after letting the others in a few times."""
    for _ in range(3):
        await asyncio.sleep(0)
    done = len(outputs(params))
    return [answer("done")] if done == 4 else [call("increment_counter", f"c{done}", count=1)]


async def killed(start: Callable[[int], Awaitable[Any]], after: Callable[[], Awaitable[None]]) -> tuple[int, int]:
    """Start all episodes, cancel each once its ``after`` is over: how many were cut, how many ended by themselves."""

    async def one(number: int) -> bool:
        episode = asyncio.ensure_future(start(number))
        killer = asyncio.create_task(after())  # type: ignore[arg-type]
        await asyncio.wait([episode, killer], return_when=asyncio.FIRST_COMPLETED)
        killer.cancel()
        episode.cancel()
        await asyncio.wait([episode, killer])
        return episode.cancelled()

    cut = await asyncio.gather(*[one(number) for number in range(EPISODES)])
    return sum(cut), EPISODES - sum(cut)


@pytest.mark.parametrize("seed", range(3))
def test_in_one_process(seed: int) -> None:
    dice = random.Random(seed)
    counter, model = Counter("counter"), ScriptedAgent(slow)
    room = Route.to_app("counter", counter)
    agent = SimpleAgent("agent", SimpleAgentConfig(), Route.to_app("model", model), neighbours=[room])
    config = SingleAgentTurnConfig(resources_tool_transports=["direct_http"], max_concurrent_episodes=50,
                                   queue_timeout_seconds=60)  # fmt: skip
    server = SingleAgentTurn("turn", config, room, Route.to_app("agent", agent))

    async def after() -> None:
        for _ in range(dice.randrange(400)):
            await asyncio.sleep(0)

    async def main() -> tuple[int, int]:
        route = Route.to_app("turn", server)
        counts = await killed(lambda number: route.post("/run", request(rollout=f"{number}-0")), after)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        whole = (await route.post("/run", request())).json()
        assert whole["result"]["reward"] == 0.0, "and the server goes on"
        return counts

    cut, ended = asyncio.run(main())
    assert cut > 20
    assert ended > 20
    assert (len(agent.sessions), len(counter.sessions), len(agent.reach)) == (0, 0, 0)


def test_over_sockets() -> None:
    """The client drops its connection; the server notices, and lets go of what it opened on two others."""
    dice = random.Random(0)
    counter, model = Counter("counter"), ScriptedAgent(slow)
    with serve(counter):
        pass  # the event loop of a server keeps one pipe for the whole process
    gc.collect()
    before = len(list(FDS.iterdir())) if FDS.is_dir() else 0
    with ExitStack() as stack:
        room = stack.enter_context(serve(counter)).url
        agent = SimpleAgent("agent", SimpleAgentConfig(), Route.to_url("m", stack.enter_context(serve(model)).url))
        player = stack.enter_context(serve(agent)).url
        config = SingleAgentTurnConfig(resources_tool_transports=["direct_http"])
        server = SingleAgentTurn("turn", config, Route.to_url("counter", room), Route.to_url("agent", player))
        hosted = stack.enter_context(serve(server))

        async def main() -> tuple[int, int]:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

                async def episode(number: int) -> None:
                    async with session.post(f"{hosted.url}/run", json=request(rollout=f"{number}-0")) as reply:
                        assert (await reply.json())["failure"] is None

                counts = await killed(episode, lambda: asyncio.sleep(dice.random() * 2.0))
            for _ in range(200):  # what was cut is still letting go, in the servers' own threads
                if not (len(agent.sessions) or len(counter.sessions)):
                    break
                await asyncio.sleep(0.05)
            return counts

        cut, _ = asyncio.run(main())
        assert cut > 20
        assert (len(agent.sessions), len(counter.sessions), len(agent.reach)) == (0, 0, 0)
    gc.collect()
    after = len(list(FDS.iterdir())) if FDS.is_dir() else 0
    assert after <= before
