"""``/mcp`` with the real client of the ``mcp`` package over a socket, and message by message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from gymkit.resources.counter import Counter
from gymkit.servers.hosting import serve
from gymkit.servers.mcp import TOKEN_HEADER
from gymkit.servers.resources import ResourcesServer
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.servers.session import Sessions
from gymkit.servers.tool import tool
from gymkit.testing.agent import answer, call, respond
from gymkit.wire import codec
from gymkit.wire.tasks import TaskRow

TOOLS = [{"type": "function", "name": name} for name in ("increment_counter", "get_counter_value")]
TASK: dict[str, Any] = {"responses_create_params": {"input": "add 2"}, "initial_count": 3, "expected_count": 5}
TYPED: dict[str, Any] = {
    "resources_session_id": "rs-1",
    "episode_id": {"rollout_id": "0-0", "attempt": 0},
    "task_id": {"taskset": "counter", "task_id": "0"},
    "task_data": {"initial_count": 3, "expected_count": 5},
}


def do(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def open_server() -> Counter:
    return Counter("counter_server", expose_tools_over_mcp=True)


async def seeded(server: ResourcesServer[Any], body: dict[str, Any] = TASK) -> tuple[dict[str, str], CookieJar]:
    """The headers that a seed gives an MCP client, and the cookies of its session."""
    reply = await Route.to_app("it", server).post("/seed_session", body)
    jar = CookieJar()
    jar.take(reply)
    told = reply.expect_ok().json()
    metadata = told["resources_tools" if "resources_session_id" in body else "mcp"]
    assert {name: metadata[name] for name in ("server_name", "url_path", "transport")} == {
        "server_name": server.name,
        "url_path": "/mcp",
        "transport": "http",
    }
    assert list(metadata["headers"]) == [TOKEN_HEADER]
    return metadata["headers"], jar


async def rpc(server: ResourcesServer[Any], payload: Any, headers: dict[str, str] | None = None) -> Reply:
    return await Route.to_app("it", server).post("/mcp", payload, headers=headers)


async def call_tool(server: ResourcesServer[Any], headers: dict[str, str], name: str, **arguments: Any) -> Any:
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await rpc(server, message, headers)).json()["result"]


@asynccontextmanager
async def connected(url: str, headers: dict[str, str] | None = None) -> AsyncIterator[ClientSession]:
    async with (
        httpx.AsyncClient(headers=headers) as client,
        streamable_http_client(f"{url}/mcp", http_client=client) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        hello = await session.initialize()
        assert hello.serverInfo.name == "counter_server"
        yield session


def text(result: CallToolResult) -> str:
    [content] = result.content
    assert content.type == "text"
    return content.text


def test_a_rollout_with_the_real_client_is_the_session_that_was_seeded() -> None:
    """Two clients at once, each with the token of its own seed; then plain HTTP sees what MCP did."""
    server = open_server()

    async def play(url: str, count: int) -> Any:
        headers, jar = await seeded(server)
        async with connected(url, headers) as session:
            assert [tool.name for tool in (await session.list_tools()).tools] == [
                "increment_counter",
                "get_counter_value",
            ]
            done = await session.call_tool("increment_counter", {"count": count})
            assert (done.isError, done.structuredContent) == (False, {"success": True})
            value = await session.call_tool("get_counter_value", {})
            assert codec.loads(text(value).encode()) == value.structuredContent == {"count": 3 + count}
            bad = await session.call_tool("increment_counter", {"count": "many"})
            assert bad.isError
            assert text(bad).startswith("HTTP 422 from POST /increment_counter: ")
            assert "valid integer" in text(bad)
            unknown = await session.call_tool("incremnt", {})
            assert unknown.isError
            assert "unknown tool 'incremnt'; this environment serves increment_counter" in text(unknown)
        body = {**TASK, "response": respond([answer("done")])}
        return (await Route.to_app("it", server).post("/verify", body, cookies=jar)).json()["reward"]

    async def both(url: str) -> list[Any]:
        return await asyncio.gather(play(url, 2), play(url, 5))

    with serve(server) as hosted:
        assert do(both(hosted.url)) == [1.0, 0.0]


def test_a_client_without_a_token_may_look_but_not_call() -> None:
    async def look(url: str) -> None:
        async with connected(url) as session:
            tools = (await session.list_tools()).tools
            assert tools[0].inputSchema["properties"] == {"count": {"type": "integer"}}
            refused = await session.call_tool("increment_counter", {"count": 1})
            assert refused.isError
            assert TOKEN_HEADER in text(refused)

    with serve(open_server()) as hosted:
        do(look(hosted.url))


def test_a_token_opens_the_tools_that_its_task_declares_and_no_others() -> None:
    async def play() -> None:
        server = open_server()
        one = {**TASK, "responses_create_params": {"input": "x", "tools": TOOLS[:1]}}
        headers, jar = await seeded(server, one)
        listed = (await rpc(server, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers)).json()
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["increment_counter"]
        assert not (await call_tool(server, headers, "increment_counter", count=1))["isError"]
        refused = await call_tool(server, headers, "get_counter_value")
        assert refused["isError"]
        assert "not allowed in this rollout" in refused["content"][0]["text"]
        plain = await Route.to_app("it", server).post("/get_counter_value", {}, cookies=jar)
        assert plain.json() == {"count": 4}, "the cookie's holder is the agent server, which is not limited"

    do(play())


@pytest.mark.parametrize("route", ["verify", "seed_session", "close_session", "aggregate_metrics", "mcp"])
def test_no_route_of_the_server_can_be_called_as_a_tool(route: str) -> None:
    async def ask() -> Any:
        server = open_server()
        headers, _ = await seeded(server)
        return await call_tool(server, headers, route)

    told = do(ask())
    assert told["isError"]
    assert f"unknown tool '{route}'" in told["content"][0]["text"]


def test_the_typed_seed_says_it_under_its_own_name_and_a_closed_session_is_closed_for_the_token_too() -> None:
    async def play() -> None:
        server = open_server()
        headers, _ = await seeded(server, TYPED)
        again, _ = await seeded(server, TYPED)
        assert not (await call_tool(server, headers, "increment_counter", count=2))["isError"]
        assert (await call_tool(server, again, "get_counter_value"))["structuredContent"] == {"count": 5}
        close = {"resources_session_id": "rs-1", "episode_id": TYPED["episode_id"]}
        await Route.to_app("it", server).post("/close_session", close)
        gone = await call_tool(server, headers, "get_counter_value")
        assert gone["isError"]
        assert "expired or was closed" in gone["content"][0]["text"]

    do(play())


def test_a_token_of_another_server_or_of_ones_own_making_opens_nothing() -> None:
    async def play() -> None:
        server, other = open_server(), open_server()
        theirs, _ = await seeded(other)
        headers, _ = await seeded(server)
        token = headers[TOKEN_HEADER]
        for forged in (theirs[TOKEN_HEADER], token[:-2], "", "x", token.replace(".", "..", 1)):
            told = await call_tool(server, {TOKEN_HEADER: forged}, "get_counter_value")
            assert told["isError"]
            assert "needs the token" in told["content"][0]["text"]

    do(play())


def test_an_expired_session_is_told_apart_from_a_missing_token() -> None:
    async def play() -> Any:
        server = open_server()
        clock = iter([0.0, 0.0, 1e6, 1e6, 1e6, 1e6])
        server.sessions = Sessions(server.sessions.name, clock=lambda: next(clock))
        headers, _ = await seeded(server)
        await seeded(server)
        return await call_tool(server, headers, "get_counter_value")

    assert "expired" in do(play())["content"][0]["text"]


@pytest.mark.parametrize(
    ("payload", "status", "code"),
    [
        (b"{", 400, -32700),
        ([], 400, -32600),
        ({"id": 1, "method": "ping"}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, 200, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": ["ping"]}, 200, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}, 200, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}, 200, -32602),
    ],
)
def test_a_message_that_is_none_gets_the_error_of_the_protocol(payload: Any, status: int, code: int) -> None:
    reply = do(rpc(open_server(), payload))
    assert (reply.status, reply.json()["error"]["code"]) == (status, code)
    assert reply.json()["id"] == (
        payload.get("id") if isinstance(payload, dict) and status == 200 else reply.json()["id"]
    )


def test_what_is_no_question_gets_no_answer_and_no_cookie_is_set() -> None:
    async def play() -> None:
        server = open_server()
        for message in ({"method": "notifications/initialized"}, {"id": 7, "result": {}}):
            reply = await rpc(server, {"jsonrpc": "2.0", **message})
            assert (reply.status, reply.body) == (202, b"")
        assert (await Route.to_app("it", server).get("/mcp", timeout=5)).status == 405
        pong = await rpc(server, {"jsonrpc": "2.0", "id": "a", "method": "ping"})
        assert pong.json() == {"jsonrpc": "2.0", "id": "a", "result": {}}
        assert pong.cookies() == {}
        assert len(server.sessions) == 0, "looking around opens no session"

    do(play())


@pytest.mark.parametrize(
    ("asked", "given"), [("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-11-25"), (None, "2025-11-25")]
)
def test_the_version_is_the_clients_where_it_is_known(asked: str | None, given: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": asked}}
    assert do(rpc(open_server(), message)).json()["result"]["protocolVersion"] == given


def test_a_web_page_of_another_host_is_refused() -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    foreign = {"origin": "https://evil.example", "host": "127.0.0.1:8000"}
    assert do(rpc(open_server(), ping, foreign)).status == 403
    own = {"origin": "http://127.0.0.1:8000", "host": "127.0.0.1:8000"}
    assert do(rpc(open_server(), ping, own)).status == 200


def test_a_server_that_exposes_nothing_has_no_such_route() -> None:
    async def ask() -> None:
        server = Counter("counter_server")
        reply = await Route.to_app("it", server).post("/seed_session", TASK)
        assert reply.json() == {}
        assert (await rpc(server, {"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 404

    do(ask())


class Named(ResourcesServer[None]):
    """Rewards the names that its verifier sees."""

    implementation = "named"
    stateless = True

    @tool
    def look(self, state: None) -> str:
        return "a \u2028 b"

    @tool
    def take_a_look(self, state: None) -> None:
        raise RuntimeError("too dark")

    def verify(self, state: None, task: TaskRow, response: dict[str, Any]) -> dict[str, Any]:
        return {
            "reward": 1.0,
            "names": [item["name"] for item in response["output"] if item["type"] == "function_call"],
        }


@pytest.mark.parametrize(
    ("emitted", "seen"),
    [
        ("look", "look"),
        ("mcp__named_server__look", "look"),
        ("mcp__whatever_the_client_made_of_it__look", "look"),
        ("mcp__named_server__take_a_look", "take_a_look"),
        ("mcp__other__search", "mcp__other__search"),
        ("mcp____look", "mcp____look"),
        ("look__look", "look__look"),
    ],
)
def test_a_verifier_sees_the_tools_own_names_and_the_record_those_that_the_agent_wrote(emitted: str, seen: str) -> None:
    items = [call(emitted), answer("done")]
    body = {"responses_create_params": {"input": "x"}, "response": respond(items)}

    async def verify(exposed: bool) -> Any:
        server = Named("named_server", expose_tools_over_mcp=exposed)
        return (await Route.to_app("it", server).post("/verify", body)).json()

    said = do(verify(True))
    assert said["names"] == [seen]
    assert said["response"]["output"] == items
    assert do(verify(False))["names"] == [emitted]


def test_text_comes_as_text_and_an_exception_as_an_error() -> None:
    async def play() -> None:
        server = Named("named_server", expose_tools_over_mcp=True)
        headers, _ = await seeded(server, {"responses_create_params": {"input": "x"}})
        said = await call_tool(server, headers, "look")
        assert said == {"content": [{"type": "text", "text": "a \u2028 b"}], "isError": False}
        broke = await call_tool(server, headers, "take_a_look")
        assert broke["isError"]
        assert broke["content"][0]["text"] == "HTTP 500 from POST /take_a_look: RuntimeError: too dark"

    do(play())
