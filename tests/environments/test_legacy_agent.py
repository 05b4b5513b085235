"""The relay: byte for byte, cookies both ways, the agent's status as it is."""

from __future__ import annotations

import asyncio

from gymkit.environments.legacy_agent import LegacyAgent
from gymkit.servers.http import Answer, Receive, Scope, Send, read_request
from gymkit.servers.route import Reply, Route


class Peer:
    """An agent that answers oddly and remembers what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[str, bytes, dict[bytes, bytes]]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await read_request(scope, receive, scope["path"])
        self.asked.append((request.path, request.body, dict(request.headers)))
        await self.answer(send)


def relay(peer: Peer, path: str, body: bytes) -> Reply:
    async def ask() -> Reply:
        server = LegacyAgent("front", Route.to_app("agent", peer))
        headers = [(b"cookie", b"a=1"), (b"x-mine", b"yes"), (b"connection", b"close"), (b"host", b"front")]
        return await Route.to_app("front", server).send("POST", path, headers, body)

    return asyncio.run(ask())


def test_bytes_cookies_and_status_pass_both_ways() -> None:
    peer = Peer(Answer(b'{"odd" :  1}', 418, [(b"set-cookie", b"b=2"), (b"set-cookie", b"c=3"), (b"te", b"x")]))
    reply = relay(peer, "/run", b'{ "row":1 }')
    assert (reply.status, reply.body) == (418, b'{"odd" :  1}')
    assert reply.cookies() == {"b": "2", "c": "3"}
    [(path, body, headers)] = peer.asked
    assert (path, body) == ("/run", b'{ "row":1 }')
    assert headers[b"cookie"] == b"a=1"
    assert headers[b"x-mine"] == b"yes"
    assert not {b"connection", b"host", b"te"} & (set(headers) | {name for name, _ in reply.headers})


def test_metrics_go_the_same_way_and_nothing_else_does() -> None:
    peer = Peer(Answer(b"{}"))
    assert relay(peer, "/aggregate_metrics", b"{}").status == 200
    assert relay(peer, "/verify", b"{}").status == 404
    assert [path for path, *_ in peer.asked] == ["/aggregate_metrics"]


def test_an_agent_that_cannot_be_reached_is_named() -> None:
    async def ask() -> Reply:
        server = LegacyAgent("front", Route.to_url("my_agent", "http://127.0.0.1:1"))
        reply = await Route.to_app("front", server).post("/run", {})
        await server.aclose()
        return reply

    reply = asyncio.run(ask())
    assert reply.status == 500
    assert reply.json()["kind"] == "unreachable"
    assert "my_agent at http://127.0.0.1:1/run" in reply.json()["detail"]
