"""What every server does with a client that goes away, and with its own end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.hosting import serve
from gymkit.servers.http import Request


class Slow(ServerApp):
    """Answers when it is let; says which of its handlers were cut, and whether it was closed."""

    server_type = "responses_api_agents"
    implementation = "slow"
    cut_short = frozenset({"POST /run"})

    def __init__(self) -> None:
        super().__init__("slow")
        self.begun, self.ended = threading.Event(), threading.Event()
        self.cut: list[str] = []
        self.closed = 0

    def handlers(self) -> Mapping[str, Handler]:
        return {"POST /run": self._wait, "POST /close_session": self._wait, "POST /quick": self._quick}

    async def _wait(self, request: Request) -> dict[str, Any]:
        self.begun.set()
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            self.cut.append(request.path)
            raise
        finally:
            self.ended.set()
        return {"path": request.path}

    async def _quick(self, request: Request) -> dict[str, Any]:
        return {"rollout": request.rollout, "training": request.training}

    async def aclose(self) -> None:
        self.closed += 1


async def _leave(url: str, path: str, server: Slow) -> None:
    """Send a request and drop the connection once it has begun; stay until the handler has ended either way."""
    async with aiohttp.ClientSession() as session:
        task = asyncio.ensure_future(session.post(f"{url}{path}", json={}))
        await asyncio.to_thread(server.begun.wait, 10)
        task.cancel()
        await asyncio.wait([task])
    await asyncio.to_thread(server.ended.wait, 10)


@pytest.mark.parametrize(
    ("path", "cut"), [("/run", ["/run"]), ("/ng-rollout/0-0/run", ["/run"]), ("/close_session", [])]
)
def test_long_work_is_cut_when_its_client_goes_and_short_work_is_not(path: str, cut: list[str]) -> None:
    server = Slow()
    with serve(server) as hosted:
        asyncio.run(_leave(hosted.url, path, server))
    assert server.cut == cut


def test_a_client_that_stays_gets_its_answers_over_one_connection() -> None:
    async def stay(url: str) -> list[Any]:
        async with aiohttp.ClientSession() as session:
            answers = []
            for path in ("/run", "/ng-rollout/7-1/training-token-capture/quick", "/run"):
                async with session.post(f"{url}{path}", json={}) as reply:
                    answers.append(await reply.json())
            return answers

    with serve(Slow()) as hosted:
        first, quick, last = asyncio.run(stay(hosted.url))
    assert first == last == {"path": "/run"}
    assert quick == {"rollout": "7-1", "training": True}


def test_a_server_on_a_socket_lets_go_of_its_own_connections_at_its_end() -> None:
    server = Slow()
    with serve(server):
        assert server.closed == 0
    assert server.closed == 1
