"""``eval run`` with the servers inside the command: failures, signals, exit statuses."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gymkit.servers.hosting import serve
from gymkit.testing.agent import Fault, ScriptedAgent, answer
from gymkit.testing.counter_service import respond
from gymkit.wire import codec
from tests.cli.conftest import COMMAND, Gymkit, environment, seed_yaml

RUN = ("eval", "run", "--config", "c.yaml", "-i", "data/counter.jsonl", "-o", "r.jsonl")


def rows(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [codec.loads(line) for line in data.splitlines()]


def test_collects_in_one_process(tmp_path: Path, service: str, gymkit: Gymkit) -> None:
    (tmp_path / "c.yaml").write_text(seed_yaml(service))
    ended = gymkit(*RUN)
    assert ended.status == 0
    assert ended.out.splitlines()[-2:] == ["mean/reward: 1.0 (5 of 5 rollouts)", "r.jsonl"]
    assert len(rows(tmp_path / "r.jsonl")) == 5
    first = rows(tmp_path / "r_materialized_inputs.jsonl")[0]["gymkit"]["config"]
    assert first["environment"] == "counter"
    assert first["agent"]["agent_base_url"] == service


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[None]:
    """A service that answers every call with a 503."""
    with serve(ScriptedAgent(lambda _: Fault(503))) as hosted:
        (tmp_path / "c.yaml").write_text(seed_yaml(hosted.url))
        yield


@pytest.mark.usefixtures("broken")
def test_failures_end_with_0_one_sentence_and_a_sidecar(tmp_path: Path, gymkit: Gymkit) -> None:
    ended = gymkit(*RUN)
    assert ended.status == 0
    assert "0 of 5 rollouts scored, 5 failed" in ended.out
    assert "mean/reward: none (0 of 5 rollouts)" in ended.out
    assert rows(tmp_path / "r.jsonl") == []
    assert [row["failure_kind"] for row in rows(tmp_path / "r_failures.jsonl")] == ["http_status"] * 5


@pytest.mark.usefixtures("broken")
def test_require_complete_makes_failures_an_error(tmp_path: Path, gymkit: Gymkit) -> None:
    ended = gymkit(*RUN, "--require-complete")
    assert ended.status == 1
    assert "Error: 0 of 5 rollouts scored, 5 failed" in ended.err
    assert len(rows(tmp_path / "r_failures.jsonl")) == 5


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_complete_lines_and_a_resumable_run(
    tmp_path: Path, gymkit: Gymkit, sent: signal.Signals, status: int
) -> None:
    """The service answers two tasks and then falls silent: the signal comes with two rows on disk and two in flight."""
    silent, free = threading.Event(), threading.Event()
    finished: list[dict[str, Any]] = []

    def brain(params: dict[str, Any]) -> Any:
        if len(finished) >= 2 and not free.is_set():
            silent.set()
            return Fault(200, seconds=60)
        reply = respond(params)
        if reply["output"][0]["type"] == "message":
            finished.append(reply)
        return reply

    with serve(ScriptedAgent(brain)) as hosted:
        (tmp_path / "c.yaml").write_text(seed_yaml(hosted.url))
        one_at_a_time = (*RUN, "--concurrency", "1")
        process = subprocess.Popen(
            [*COMMAND, *one_at_a_time], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
        )
        assert silent.wait(30)
        os.kill(process.pid, sent)
        _, err = process.communicate(timeout=30)
        assert process.returncode == status
        assert "stopped: 2 of 5 rollouts are in r.jsonl; --resume goes on" in err
        assert "Traceback" not in err
        before = rows(tmp_path / "r.jsonl")
        assert len(before) == 2
        free.set()
        assert gymkit(*one_at_a_time, "--resume").status == 0
    after = rows(tmp_path / "r.jsonl")
    assert after[:2] == before
    assert [row["reward"] for row in after] == [1.0] * 5


def test_bad_rows_are_named_all_at_once_and_nothing_starts(tmp_path: Path, service: str, gymkit: Gymkit) -> None:
    (tmp_path / "c.yaml").write_text(seed_yaml(service))
    (tmp_path / "bad.jsonl").write_bytes(
        b'{"responses_create_params": {"input": "x"}, "initial_count": 1}\n'
        b'{"initial_count": 1, "expected_count": 2}\n'
        b'{"a"\n'
    )
    ended = gymkit("eval", "run", "--config", "c.yaml", "-i", "bad.jsonl", "-o", "r.jsonl")
    assert ended.status == 1
    for word in ("expected_count", "responses_create_params", "bad.jsonl", "nothing was started"):
        assert word in ended.err
    assert not (tmp_path / "r.jsonl").exists()


def test_overrides_reach_the_service(tmp_path: Path, gymkit: Gymkit) -> None:
    agent = ScriptedAgent(lambda _: [answer("done")])
    with serve(agent) as hosted:
        (tmp_path / "c.yaml").write_text(seed_yaml(hosted.url))
        ended = gymkit(*RUN, "--limit", "1", "+responses_create_params={temperature:0.5,model:'m x'}")
    assert ended.status == 0
    params = agent.received[0].params
    assert (params["temperature"], params["model"]) == (0.5, "m x")
    assert "mean/reward: 0.0 (1 of 1 rollouts)" in ended.out
