"""Routes: the same call over a socket and straight into an app, with the same errors and the same cookies."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import BadStatus, CallTimeout, InvalidReply, NotJson, Redirected, Unreachable
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.hosting import serve
from gymkit.servers.http import Answer, Receive, Request, Scope, Send, json_answer, read_request
from gymkit.servers.route import CookieJar, Reply, Route


async def peer(scope: Scope, receive: Receive, send: Send) -> None:
    """Echoes, misbehaves or stalls, by path."""
    request = await read_request(scope, receive, scope["path"])
    match request.path:
        case "/echo":
            seen = {name.decode(): value.decode() for name, value in request.headers}
            content = {"method": request.method, "body": request.body.decode(), "cookie": seen.get("cookie")}
            await json_answer(content, 200, {b"set-cookie": b"s=1; Path=/; HttpOnly"})(send)
        case "/list":
            await json_answer([1])(send)
        case "/text":
            await Answer(b"hello")(send)
        case "/moved":
            await Answer(b"", 307, [(b"location", b"http://127.0.0.1:9/there")])(send)
        case "/teapot":
            await Answer(b"short and stout", 418)(send)
        case "/stall":
            await asyncio.Event().wait()
        case "/stream":

            async def chunks() -> Any:
                for part in (b"a", b"b", b"c"):
                    yield part

            await Answer(chunks())(send)
        case _:
            raise RuntimeError("no such path")


def both(call: Any) -> list[Any]:
    """Run ``call(route)`` over a socket and in process."""

    async def run(route: Route) -> Any:
        try:
            return await call(route)
        finally:
            await route.aclose()

    with serve(peer) as hosted:
        over_socket = asyncio.run(run(Route.to_url("peer", hosted.url)))
    return [over_socket, asyncio.run(run(Route.to_app("peer", peer)))]


def do(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def test_near_and_far_are_the_same_call() -> None:
    async def call(route: Route) -> Any:
        reply = await route.post("/echo", {"a": 1}, cookies={"x": "1", "y": "2"}, timeout=10)
        return reply.status, reply.json(), reply.cookies()

    far, near = both(call)
    assert far == near
    assert far == (200, {"method": "POST", "body": '{"a":1}', "cookie": "x=1; y=2"}, {"s": "1"})


def test_a_stream_arrives_whole() -> None:
    async def call(route: Route) -> Any:
        return (await route.get("/stream", timeout=10)).body

    assert both(call) == [b"abc", b"abc"]


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        ("/moved", Redirected, "http://127.0.0.1:9/there"),
        ("/teapot", BadStatus, "short and stout"),
        ("/text", NotJson, "hello"),
        ("/list", InvalidReply, "a JSON list, not an object"),
    ],
)
def test_what_is_no_good_answer_is_said(path: str, error: type[Exception], words: str) -> None:
    async def call(route: Route) -> Any:
        reply = await route.post(path, {}, timeout=10)
        with pytest.raises(error, match=words) as caught:
            reply.expect_ok().json_object()
        return caught.value.server, caught.value.url.endswith(path)  # type: ignore[attr-defined]

    assert both(call) == [("peer", True), ("peer", True)]


def test_a_stall_ends_at_its_bound_and_names_the_knob() -> None:
    async def call(route: Route) -> str:
        with pytest.raises(CallTimeout) as caught:
            await route.post("/stall", {}, timeout=0.1, knob="my_knob")
        return str(caught.value)

    for message in both(call):
        assert "my_knob=0.1 s" in message
        assert "/stall" in message


def test_an_app_that_breaks_is_a_server_that_cannot_be_reached() -> None:
    with pytest.raises(Unreachable, match="no such path"):
        do(Route.to_app("peer", peer).post("/nothing", {}))


def test_a_route_can_be_used_again_after_it_was_closed_and_in_another_loop() -> None:
    with serve(peer) as hosted:
        route = Route.to_url("peer", hosted.url)

        async def use() -> int:
            status = (await route.get("/list", timeout=10)).status
            await route.aclose()
            return status

        assert [do(use()), do(use())] == [200, 200]


def test_a_base_path_is_kept() -> None:
    async def call() -> str:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await Answer(scope["path"].encode())(send)

        with serve(app) as hosted:
            route = Route.to_url("peer", f"{hosted.url}/base/")
            reply = await asyncio.wait_for(route.get("/v1/responses", timeout=10), 10)
            await route.aclose()
            return reply.text

    assert do(call()) == "/base/v1/responses"


def test_a_cookie_jar_takes_and_drops() -> None:
    jar = CookieJar()
    headers = [(b"set-cookie", b"a=1"), (b"set-cookie", b'b="q; x"; Path=/'), (b"set-cookie", b"c=3; max-age=60")]
    jar.take(Reply("s", "u", 200, headers, b""))
    assert dict(jar)["a"] == "1"
    jar.take(Reply("s", "u", 200, [(b"set-cookie", b"a=gone; Max-Age=0; Path=/")], b""))
    assert "a" not in jar
    assert jar["c"] == "3"


@given(st.text(st.characters(exclude_characters="/?#\\", exclude_categories=["Cs"]), max_size=60))
def test_credentials_are_refused_and_never_repeated(password: str) -> None:
    problem = base_url_problem(f"http://user:{password}@host")
    assert problem is not None
    assert len(password) < 6 or password not in problem


@given(
    st.dictionaries(
        st.from_regex(r"[a-zA-Z_]{1,8}", fullmatch=True), st.from_regex(r"[a-zA-Z0-9._=-]{0,12}", fullmatch=True)
    )
)
def test_cookies_that_are_sent_can_be_read(cookies: dict[str, str]) -> None:
    line = "; ".join(f"{name}={value}" for name, value in cookies.items()).encode()
    request = Request("POST", "/", [(b"cookie", line)], b"")
    for name, value in cookies.items():
        assert request.cookie(name) == value
    assert request.cookie("another_name") is None
