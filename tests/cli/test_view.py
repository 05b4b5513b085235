"""``gymkit view``: a real process, real requests."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gymkit.cli.view import RunPages
from gymkit.errors import StoreError
from tests.cli.conftest import COMMAND, Gymkit, environment
from tests.frames.samples import our_failure, ours, planned, write_run

LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url: str, **headers: str) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(url, headers=headers)
    try:
        with LOCAL.open(request, timeout=20) as reply:
            return reply.status, dict(reply.headers), reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path, [ours(0), ours(1, reward=0.0)], failures=[our_failure(2)], plan=map(planned, range(3)))


@pytest.fixture
def served(run: Path) -> Iterator[str]:
    command = [*COMMAND, "view", str(run)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"at (http://127\.0\.0\.1:\d+) ", process.stdout.readline())
        assert found
        yield found[1]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130


def test_a_run_is_served_and_a_reload_shows_what_has_come(served: str, run: Path) -> None:
    status, headers, page = get(served)
    assert status == 200
    assert "1 to 3 of 3 rollouts" in page
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["cache-control"] == "no-store"
    assert "increment_counter" in get(f"{served}/rollout/1/0")[2]
    assert "no connection" in get(f"{served}/rollout/2/0")[2]
    with run.open("ab") as file:
        file.write(json.dumps(ours(3)).encode() + b"\n")
    assert "1 to 4 of 4 rollouts" in get(served)[2]
    for path, sentence in (
        ("/rollout/9/0", "no row with task_index 9"),
        ("/?page=x", "page=x"),
        ("/nothing", "no such page"),
    ):
        status, _, page = get(served + path)
        assert (status, sentence in page) == (404, True), page


def test_it_is_served_to_this_machine_alone(served: str) -> None:
    """A page elsewhere can have a name of its own that leads to this machine: the browser then takes it for one."""
    for host in ("evil.example", "127.0.0.1.evil.example:80", ""):
        assert get(served, Host=host)[0] in (400, 403)
    assert get(served, Host="localhost:1")[0] == 200


def asked(app: RunPages, method: str = "GET", path: str = "/") -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": [(b"host", b"localhost")]}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


def test_nothing_can_be_sent_to_it_and_a_run_that_goes_is_said(run: Path) -> None:
    app = RunPages(run)
    assert asked(app, "POST")[0] == 405
    for path in run.parent.iterdir():
        path.unlink()
    status, page = asked(app)
    assert status == 500
    assert b"does not exist" in page
    with pytest.raises(StoreError, match="does not exist"):
        RunPages(run)


def test_a_run_that_is_not_there_is_an_error_with_a_status(gymkit: Gymkit) -> None:
    ended = gymkit("view", "nowhere.jsonl")
    assert ended.status == 1
    assert "Error: nowhere.jsonl does not exist" in ended.err
