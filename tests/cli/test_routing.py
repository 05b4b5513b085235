"""Environment servers from a shell: servers inside the command, and servers that run already."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from gymkit.wire import codec
from tests.cli.conftest import Gymkit, Started
from tests.sdk.test_routed import YAML, episode

ROUTED = ("+environment_routing_mode=taskset", r"+environment_server_routes={counter\:train:turn}")


def test_task_sets_in_one_process_and_over_sockets(
    tmp_path: Path, gymkit: Gymkit, start: Callable[..., Started]
) -> None:
    (tmp_path / "c.yaml").write_text(YAML)
    (tmp_path / "tasks.jsonl").write_bytes(b"".join(codec.dumps(episode(count)) + b"\n" for count in (5, 6)))
    ended = gymkit("eval", "run", "--config", "c.yaml", "-i", "tasks.jsonl", "-o", "here.jsonl", *ROUTED)
    assert (ended.status, "mean/reward: 0.5 (2 of 2 rollouts)" in ended.out) == (0, True), ended

    servers = start("--config", "c.yaml", "+head_server.port=0")
    assert "environment_servers/single_agent_turn" in "".join(servers.lines)
    files = ("-i", "tasks.jsonl", "-o", "there.jsonl", f"+head_server.port={servers.port}")
    ended = gymkit("eval", "run", "--no-serve", *files, *ROUTED)
    assert (ended.status, "mean/reward: 0.5 (2 of 2 rollouts)" in ended.out) == (0, True), ended
    assert servers.stop(signal.SIGTERM) == 143

    ended = gymkit("eval", "run", "--config", "c.yaml", "-i", "tasks.jsonl", "-o", "r.jsonl", ROUTED[0])
    assert ended.status == 2
    assert "environment_server_routes are needed" in ended.err
