"""The command line in real processes, on 127.0.0.1 and free ports, each test in a folder of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gymkit.testing import counter_service
from tests.config.conftest import SEED_YAML

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "gymkit"]


def environment() -> dict[str, str]:
    """Ours, with the checkout on the path of a process in another folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "200"}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


Gymkit = Callable[..., Ended]


@pytest.fixture
def gymkit(tmp_path: Path) -> Gymkit:
    """Run a command to its end."""

    def gymkit(*arguments: str) -> Ended:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)

    return gymkit


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """URL of the counter service, a process of its own."""
    with counter_service.running() as url:
        yield url


def seed_yaml(url: str) -> str:
    """The seed's file with another address for the service."""
    return SEED_YAML.replace("http://your-agent-host:9000", url)


@dataclass(frozen=True)
class Started:
    """A running ``gymkit env start``."""

    process: subprocess.Popen[str]
    lines: list[str]
    port: int

    def stop(self, sent: signal.Signals) -> int:
        """Send a signal; the exit status."""
        self.process.send_signal(sent)
        return self.process.wait(timeout=20)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """Start servers and wait until they say that they are ready."""
    processes = []

    def start(*arguments: str) -> Started:
        process = subprocess.Popen(
            [*COMMAND, "env", "start", *arguments], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if found := re.match(r"ready; discovery at http://127\.0\.0\.1:(\d+)", line):
                return Started(process, lines, int(found[1]))
        raise AssertionError(f"it never got ready: {lines}")

    yield start
    for process in processes:
        process.kill()
        process.communicate()
