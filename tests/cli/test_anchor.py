"""Our servers under NeMo Gym's collector and theirs under ours: the same rewards and the same trajectories.

Opt in with ``GYMKIT_ANCHOR_PYTHON``, a Python that has ``nemo-gym`` 0.7.0.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gymkit.shipped import shipped
from gymkit.wire import codec
from tests.bench.anchor import Anchor, anchor
from tests.bench.harness import Service
from tests.cli.conftest import Gymkit, Started, seed_yaml

PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON", "")
pytestmark = [
    pytest.mark.anchor,
    pytest.mark.skipif(not PYTHON, reason="GYMKIT_ANCHOR_PYTHON names no Python with nemo-gym"),
]


def told(path: Path) -> list[Any]:
    """What a run says of each task: the reward, and the trajectory without ids and nulls."""
    rows = sorted((codec.loads(line) for line in path.read_bytes().splitlines()), key=lambda row: row["_ng_task_index"])
    return [(row["_ng_task_index"], row["reward"], [_told(item) for item in row["response"]["output"]]) for row in rows]


def _told(item: dict[str, Any]) -> dict[str, Any]:
    kept = {key: item[key] for key in ("type", "role", "name", "arguments", "output", "content") if item.get(key)}
    if isinstance(kept.get("content"), list):
        kept["content"] = [part["text"] for part in kept["content"]]
    return kept


@pytest.fixture
def ours(tmp_path: Path, service: str, gymkit: Gymkit) -> list[Any]:
    """The run that is ours from end to end."""
    (tmp_path / "counter_remote.yaml").write_text(seed_yaml(service))
    ended = gymkit("eval", "run", "--config", "counter_remote.yaml", "-i", "data/counter.jsonl", "-o", "ours.jsonl")
    assert ended.status == 0
    return told(tmp_path / "ours.jsonl")


def test_their_collector_drives_our_servers(tmp_path: Path, ours: list[Any], start: Callable[..., Started]) -> None:
    servers = start("+config_paths=[counter_remote.yaml]", "+head_server.port=0")
    collector = Anchor(Path(PYTHON), tmp_path, servers.port, servers.process.pid, 0.0)
    collector.collect(shipped("data/counter.jsonl"), tmp_path / "theirs.jsonl", 4)
    assert told(tmp_path / "theirs.jsonl") == ours
    assert "3 servers found (3 healthy, 0 unhealthy)" in collector.gym(
        "env", "status", f"+head_server.port={servers.port}"
    )


def test_our_collector_drives_their_servers(tmp_path: Path, ours: list[Any], service: str, gymkit: Gymkit) -> None:
    # Ray's sockets lie under the folder, and their paths may have 107 bytes.
    with TemporaryDirectory() as short, anchor(Path(PYTHON), Path(short), Service(service), 4) as running:
        port = f"+head_server.port={running.head_port}"
        ended = gymkit("eval", "run", "--no-serve", "-i", "data/counter.jsonl", "-o", "mixed.jsonl", port)
    assert (ended.status, ended.out.splitlines()[-2]) == (0, "mean/reward: 1.0 (5 of 5 rollouts)")
    assert told(tmp_path / "mixed.jsonl") == ours
