"""Apps on real sockets, in a thread and in the running loop."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import httpx
import pytest

from gymkit.errors import ConfigError
from gymkit.servers.hosting import bind, serve, serve_all, url_of


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Answers with its path; ``/slow`` never answers."""
    if scope["path"] == "/slow":
        await asyncio.Event().wait()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(scope["path"]))]}
    )
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def get(url: str) -> str:
    return httpx.get(url, trust_env=False, timeout=10).text


def test_serves_from_the_moment_it_returns_until_it_stops() -> None:
    with serve(hello) as hosted:
        assert get(f"{hosted.url}/a") == "/a"
        assert repr(hosted) == f"<Hosted {hosted.url}>"
    with pytest.raises(httpx.ConnectError):
        get(f"{hosted.url}/a")
    assert not [thread for thread in threading.enumerate() if thread.name == f"gymkit-{hosted.port}"]


def test_listens_on_loopback_only() -> None:
    with serve(hello) as hosted:
        assert hosted.url == f"http://127.0.0.1:{hosted.port}"


def test_a_taken_port_gets_a_sentence() -> None:
    with serve(hello) as hosted, pytest.raises(ConfigError) as caught:
        serve(hello, port=hosted.port)
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1:{hosted.port}: Address already in use; choose another port, or 0"
    )


def test_a_port_is_free_again_after_stop() -> None:
    with serve(hello) as first:
        get(f"{first.url}/a")
    with serve(hello, port=first.port) as second:
        assert get(f"{second.url}/b") == "/b"


def test_stop_is_bounded_while_a_request_hangs() -> None:
    hosted = serve(hello)
    with socket.create_connection(("127.0.0.1", hosted.port)) as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
        started = time.perf_counter()
        hosted.stop()
        assert time.perf_counter() - started < 8


def test_small_packets_are_not_held_back() -> None:
    """asyncio sets TCP_NODELAY only where the listener names its protocol; else a kept-alive request takes 44 ms."""

    async def scenario() -> int:
        accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            accepted.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = bind("127.0.0.1", 0)
        async with await asyncio.start_server(accept, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            no_delay = await accepted
            writer.close()
            await writer.wait_closed()
            return no_delay

    assert asyncio.run(scenario())


def test_serve_all_serves_several_in_this_loop_until_cancelled() -> None:
    async def scenario() -> list[str]:
        listeners = [bind("127.0.0.1", 0) for _ in range(3)]
        started = asyncio.Event()
        serving = asyncio.create_task(serve_all([(hello, listener) for listener in listeners], started.set))
        await asyncio.wait_for(started.wait(), 10)
        async with httpx.AsyncClient(trust_env=False) as client:
            texts = [(await client.get(f"{url_of(listener)}/{index}")).text for index, listener in enumerate(listeners)]
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert all(listener.fileno() == -1 for listener in listeners)
        return texts

    assert asyncio.run(scenario()) == ["/0", "/1", "/2"]


def test_serve_all_leaves_the_signal_handlers_alone() -> None:
    import signal

    async def scenario() -> None:
        before = signal.getsignal(signal.SIGINT)
        started = asyncio.Event()
        serving = asyncio.create_task(serve_all([(hello, bind("127.0.0.1", 0))], started.set))
        await started.wait()
        assert signal.getsignal(signal.SIGINT) is before
        serving.cancel()
        await asyncio.wait([serving])

    asyncio.run(scenario())


def test_a_socket_on_all_interfaces_is_reached_over_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        assert url_of(listener) == "http://127.0.0.1:0"
