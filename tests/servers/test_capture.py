"""Captures: what is appended is read back by rollout, and what could not be kept is said."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from gymkit.errors import ConfigError
from gymkit.servers.call import CallRecord, ModelCall, category_of, record_of
from gymkit.servers.capture import Capture, FileCapture, MemoryCapture
from gymkit.wire import codec


def record(rollout: str = "r1", request: bytes = b'{"input":"x"}', response: bytes = b'{"id":"a"}') -> CallRecord:
    return record_of(ModelCall("responses", rollout=rollout), "policy", 200, request, response)


def append(capture: Capture, *records: CallRecord) -> None:
    async def scenario() -> None:
        for each in records:
            await capture.append(each)

    asyncio.run(scenario())


@pytest.fixture(params=["memory", "files"])
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Capture:
    return MemoryCapture() if request.param == "memory" else FileCapture(tmp_path / "captures")


def test_records_come_back_in_order_and_by_rollout(capture: Capture) -> None:
    append(capture, record("r1", b'{"n":1}'), record("r2"), record("r1", b'{"n":2}'))
    calls, incomplete = capture.read("r1")
    assert [call["request"] for call in calls] == [{"n": 1}, {"n": 2}]
    assert not incomplete
    assert len({call["model_call_id"] for call in calls}) == 2
    assert capture.read("never") == ([], False)


def test_draining_forgets(capture: Capture) -> None:
    append(capture, record("r1"), record("r2"))
    assert len(capture.drain("r1").calls) == 1
    assert capture.read("r1").calls == []
    assert len(capture.read("r2").calls) == 1
    capture.clear("never")


def test_bodies_that_are_no_json_are_kept_as_text(capture: Capture) -> None:
    append(capture, record(request=b"{broken \xff", response=b""))
    [call] = capture.read("r1").calls
    assert (call["request"], call["request_raw"]) == (None, "{broken \ufffd")
    assert call["response"] is None
    assert "response_raw" not in call


def test_odd_text_survives(capture: Capture) -> None:
    odd = {"input": "line\u2028end \ud800 \u0085"}
    append(capture, record(request=codec.dumps(odd)), record(request=b'{\n "pretty": true\r\n}'))
    assert [call["request"] for call in capture.read("r1").calls] == [odd, {"pretty": True}]


def test_memory_lets_the_oldest_go_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    capture = MemoryCapture(limit=3 * record().size)
    with caplog.at_level(logging.WARNING, "gymkit"):
        append(capture, *(record(f"r{number}") for number in range(5)))
    assert [len(capture.read(f"r{number}").calls) for number in range(5)] == [0, 0, 1, 1, 1]
    assert [capture.read(f"r{number}").incomplete for number in range(5)] == [True, True, False, False, False]
    assert "r0" in caplog.text
    capture.clear("r0")
    assert not capture.read("r0").incomplete


def test_memory_is_given_back() -> None:
    capture = MemoryCapture()
    for number in range(10):
        append(capture, record(f"r{number}"))
        capture.drain(f"r{number}")
    assert repr(capture) == "<MemoryCapture 0 rollouts, 0 bytes>"


def test_servers_in_several_threads_may_share_a_memory() -> None:
    capture = MemoryCapture()
    threads = [threading.Thread(target=append, args=(capture, *[record("r1")] * 200)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(capture.drain("r1").calls) == 800
    assert repr(capture) == "<MemoryCapture 0 rollouts, 0 bytes>"


def test_files_have_nemo_gyms_names_and_a_line_a_call(tmp_path: Path) -> None:
    append(FileCapture(tmp_path), record("t0-r1"), record("t0-r1"))
    [path] = tmp_path.iterdir()
    assert path.name == "t0-r1.capture.jsonl"
    lines = path.read_bytes().split(b"\n")
    assert [codec.loads(line)["dialect"] for line in lines[:-1]] == ["responses", "responses"]
    assert lines[-1] == b""


def test_servers_may_share_a_rollouts_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        captures = [FileCapture(tmp_path) for _ in range(4)]
        big = codec.dumps({"input": "x" * 50_000})
        await asyncio.gather(*(each.append(record(request=big)) for each in captures for _ in range(5)))

    asyncio.run(scenario())
    calls, incomplete = FileCapture(tmp_path).read("r1")
    assert (len(calls), incomplete) == (20, False)


def test_what_cannot_be_written_is_marked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    capture = FileCapture(tmp_path)
    (tmp_path / "r1.capture.jsonl").mkdir()
    append(capture, record("r1"))
    assert (tmp_path / "r1.capture.incomplete").exists()
    assert "r1" in caplog.text
    (tmp_path / "r1.capture.jsonl").rmdir()
    assert capture.read("r1") == ([], True)
    capture.clear("r1")
    assert capture.read("r1") == ([], False)


def test_a_torn_line_makes_a_rollout_incomplete(tmp_path: Path) -> None:
    capture = FileCapture(tmp_path)
    append(capture, record("r1"), record("r1"))
    path = tmp_path / "r1.capture.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    calls, incomplete = capture.read("r1")
    assert (len(calls), incomplete) == (1, True)


def test_a_directory_must_be_absolute_and_possible(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absolute"):
        FileCapture("captures")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be made"):
        FileCapture(tmp_path / "file" / "captures")


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (200, None),
        (400, "client_error"),
        (401, "auth"),
        (403, "auth"),
        (404, "not_found"),
        (408, "timeout"),
        (429, "rate_limit"),
        (500, "upstream_error"),
        (504, "timeout"),
    ],
)
def test_a_status_belongs_to_a_category(status: int, category: Any) -> None:
    assert category_of(status) == category
