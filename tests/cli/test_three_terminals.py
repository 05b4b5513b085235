"""The seed's three terminals, as written: the service, ``env start``, ``eval run --no-serve``."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from gymkit.wire import codec
from tests.cli.conftest import Gymkit, Started, seed_yaml

Start = Callable[..., Started]
SEED_RUN = (
    *("eval", "run", "--no-serve", "+agent_name=remote_agent"),
    "+input_jsonl_fpath=resources_servers/example_session_state_mgmt/data/example.jsonl",
    "+output_jsonl_fpath=results/rollouts.jsonl",
)


@pytest.fixture
def servers(tmp_path: Path, service: str, start: Start) -> Started:
    """The second terminal."""
    (tmp_path / "counter_remote.yaml").write_text(seed_yaml(service))
    return start("+config_paths=[counter_remote.yaml]", "+head_server.port=0")


def test_five_of_five(tmp_path: Path, servers: Started, gymkit: Gymkit) -> None:
    ended = gymkit(*SEED_RUN, f"+head_server.port={servers.port}")
    assert ended.status == 0
    assert "mean/reward: 1.0 (5 of 5 rollouts)" in ended.out
    rows = [codec.loads(line) for line in (tmp_path / "results/rollouts.jsonl").read_bytes().splitlines()]
    assert [row["reward"] for row in rows] == [1.0] * 5
    assert {row["_ng_environment_server"] for row in rows} == {"remote_agent_environment_server"}
    for row in rows:
        kinds = [item["type"] for item in row["response"]["output"]]
        assert kinds == ["function_call", "function_call_output"] * (len(kinds) // 2) + ["message"]
    stems = sorted(path.name for path in (tmp_path / "results").iterdir() if not path.name.startswith("."))
    assert stems == [
        "quality_summary.json",
        "rollout_verdicts.jsonl",
        "rollouts.jsonl",
        "rollouts_aggregate_metrics.json",
        "rollouts_failures.jsonl",
        "rollouts_materialized_inputs.jsonl",
    ]


def test_long_forms_repeats_and_resume(tmp_path: Path, servers: Started, gymkit: Gymkit) -> None:
    arguments = (
        *(
            "eval",
            "run",
            "--no-serve",
            "--agent",
            "remote_agent",
            "--input",
            "data/counter.jsonl",
            "--output",
            "r.jsonl",
        ),
        *("--num-repeats", "2", "--limit", "3", "--concurrency", "2", f"+head_server.port={servers.port}"),
    )
    assert "mean/reward: 1.0 (6 of 6 rollouts)" in gymkit(*arguments).out
    lines = (tmp_path / "r.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "r.jsonl").write_bytes(b"".join(lines[:4]))
    assert gymkit(*arguments, "--resume").status == 0
    again = (tmp_path / "r.jsonl").read_bytes().splitlines(keepends=True)
    assert again[:4] == lines[:4]
    assert len(again) == 6


def test_every_server_is_on_loopback_and_where_discovery_says(servers: Started) -> None:
    head = f"http://127.0.0.1:{servers.port}"
    assert httpx.get(f"{head}/readyz", trust_env=False).json() == {"status": "ok"}
    rows = httpx.get(f"{head}/server_instances", trust_env=False).json()
    assert [row["process_name"] for row in rows] == [
        "example_session_state_mgmt_resources_server",
        "remote_agent",
        "remote_agent_environment_server",
    ]
    for row in rows:
        assert row["host"] == "127.0.0.1"
        assert httpx.get(row["url"], trust_env=False).status_code == 200
        assert any(row["url"] in line for line in servers.lines)


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_servers(servers: Started, sent: signal.Signals, status: int) -> None:
    assert servers.stop(sent) == status
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", servers.port), timeout=5)


def test_a_taken_discovery_port_gets_a_sentence(servers: Started, gymkit: Gymkit) -> None:
    ended = gymkit("env", "start", "+config_paths=[counter_remote.yaml]", f"+head_server.port={servers.port}")
    assert ended.status == 1
    assert f"cannot listen on 127.0.0.1:{servers.port}: Address already in use" in ended.err


def test_settings_of_running_servers_cannot_be_changed(servers: Started, gymkit: Gymkit) -> None:
    change = "++remote_agent.responses_api_agents.remote_agent.concurrency=1"
    ended = gymkit(*SEED_RUN, "--config", "counter_remote.yaml", change, f"+head_server.port={servers.port}")
    assert ended.status == 1
    assert "remote_agent has no effect with --no-serve" in ended.err


def test_nobody_answers_at_the_discovery_port(gymkit: Gymkit) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ended = gymkit(*SEED_RUN, f"+head_server.port={free.getsockname()[1]}")
    assert ended.status == 1
    assert "gymkit env start" in ended.err
