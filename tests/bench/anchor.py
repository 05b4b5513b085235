"""NeMo Gym 0.7.0 beside us: its servers up, one command timed, its servers down.

Needs a Python that has ``nemo-gym`` (see README.md here); nothing of it is imported. Ray is kept on loopback and
sends no usage reports.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml

from tests.bench.harness import Measurement, Service

START_SECONDS = 120
RUN_SECONDS = 600
CONFIG = """\
the_resources_server:
  resources_servers:
    {environment}: {{entrypoint: app.py, domain: agent}}
remote_agent:
  responses_api_agents:
    remote_agent:
      entrypoint: app.py
      agent_base_url: {url}
      resources_server: {{type: resources_servers, name: the_resources_server}}
      concurrency: {in_flight}
      max_steps: 8
"""
COUNTER = "example_session_state_mgmt"
RELAY = "environment_servers/legacy_agent"
PARTS = {
    "resources_servers/": "resources server",
    "remote_agent/": "remote agent",
    "simple_agent/": "simple agent",
    "openai_model/": "model server",
    "legacy_agent/": "relay",
}
REST = "Ray and the rest"
_PROGRESS = re.compile(r"\d+/\d+ \[[\d:]+<[^,]*, *([\d.]+)(it/s|s/it)\]")


@dataclass
class Anchor:
    """NeMo Gym's servers, ready. ``ready`` is the seconds from the command until all of them were."""

    python: Path
    folder: Path
    head_port: int
    pid: int
    ready: float

    def collect(
        self, tasks: Path, output: Path, in_flight: int, *options: str, agent: str = "remote_agent"
    ) -> Measurement:
        """Time one ``gym eval run`` of ``agent`` over the rows in ``tasks``."""
        before, own, start = self.cpu(), _children_cpu(), time.perf_counter()
        paths = (f"+input_jsonl_fpath={tasks}", f"+output_jsonl_fpath={output}")
        port = f"++head_server.port={self.head_port}"
        flight = f"+num_samples_in_parallel={in_flight}"
        printed = self.gym("eval", "run", "--no-serve", f"+agent_name={agent}", *paths, port, flight, *options)
        seconds = time.perf_counter() - start
        cpu = {part: used - before[part] for part, used in self.cpu().items()} | {"collector": _children_cpu() - own}
        rollouts = output.read_bytes().count(b"\n")
        return Measurement("NeMo Gym 0.7.0", in_flight, rollouts, seconds, _collecting(printed, rollouts), cpu)

    def gym(self, *arguments: str) -> str:
        """Run one ``gym`` command to its end; returns what it printed. Raises RuntimeError when it fails."""
        run = subprocess.run(
            [str(self.python.with_name("gym")), *arguments],
            cwd=self.folder,
            env=_environment(self.python, self.folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=RUN_SECONDS,
        )
        printed = run.stdout.decode(errors="replace")
        if run.returncode:
            raise RuntimeError(f"gym {' '.join(arguments[:2])} ended with {run.returncode}:\n{printed[-3000:]}")
        return printed

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far by part, from /proc (Linux)."""
        used = dict.fromkeys([*PARTS.values(), REST], 0.0)
        for pid in _descendants(self.pid):
            used[_part(pid)] += _cpu_of(pid)
        return used


@contextmanager
def anchor(python: Path, folder: Path, target: Service, in_flight: int, environment: str = COUNTER) -> Iterator[Anchor]:
    """NeMo Gym's servers for the length of the block, working in ``folder``.

    ``in_flight`` is the remote agent's own bound. ``environment`` names a resources server of NeMo Gym's, or one in
    ``folder/resources_servers``.
    """
    config = CONFIG.format(url=target.url, in_flight=in_flight, environment=environment)
    servers = (f"resources_servers/{environment}", "responses_api_agents/remote_agent", RELAY)
    with anchored(python, folder, config, servers) as running:
        yield running


@contextmanager
def anchored(python: Path, folder: Path, text: str, servers: Sequence[str]) -> Iterator[Anchor]:
    """The servers of the YAML ``text`` for the length of the block; ``servers`` are their ``type/implementation``."""
    config = folder / "anchor.yaml"
    config.write_text(text)
    port = _free_port()
    venvs = _linked(python, folder / "venvs", servers)
    arguments = [f"+config_paths=[{config}]", f"++uv_venv_dir={venvs}", "++skip_venv_if_present=true"]
    command = [str(python.with_name("gym")), "env", "start", *arguments, f"++head_server.port={port}"]
    log, start = folder / "env.log", time.perf_counter()
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(python, folder), stdout=sink, stderr=sink, start_new_session=True
        )
    with process:
        try:
            _wait_ready(process, log)
            yield Anchor(python, folder, port, process.pid, time.perf_counter() - start)
        finally:
            _stop(process)


@contextmanager
def alone(python: Path, server: str, config: Mapping[str, Any], name: str, hosted: Mapping[str, str]) -> Iterator[str]:
    """One of NeMo Gym's servers by itself, ``server`` in its packages, which is ``name`` in ``config``.

    The servers in ``hosted`` run already, each at its URL. Gives the server's own URL.
    """
    port = _free_port()
    whole = deepcopy({**config, **_HOUSE})
    for each, place in {**{each: _place(url) for each, url in hosted.items()}, name: _place(_url(port))}.items():
        (kind,) = whole[each]
        (implementation,) = whole[each][kind]
        whole[each][kind][implementation] |= place
    (packages,) = (python.parent.parent / "lib").glob("python3.*/site-packages")
    variables = {"NEMO_GYM_CONFIG_DICT": yaml.safe_dump(whole), "NEMO_GYM_CONFIG_PATH": name}
    with TemporaryDirectory() as short:
        process = subprocess.Popen(
            [str(python), "app.py"],
            cwd=packages / server,
            env={**_environment(python, Path(short)), **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(_url(port), process)
            yield _url(port)
        finally:
            process.terminate()
            process.wait(timeout=30)


_HOUSE = {
    "head_server": {"host": "127.0.0.1", "port": 1},
    "default_host": "127.0.0.1",
    "dry_run": False,
    "profiling_enabled": False,
    "uvicorn_logging_show_200_ok": False,
}


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _place(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {"host": parts.hostname, "port": parts.port, "entrypoint": "app.py"}


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise RuntimeError(f"{url} never got ready")


def _linked(python: Path, venvs: Path, servers: Sequence[str]) -> Path:
    """Where NeMo Gym looks for one virtualenv a server: links to the one that we were given."""
    for server in servers:
        (venvs / server).mkdir(parents=True, exist_ok=True)
        if not (venvs / server / ".venv").is_symlink():
            (venvs / server / ".venv").symlink_to(python.parent.parent)
    return venvs


def _wait_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while b"servers ready!" not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"NeMo Gym's servers did not get ready:\n{log.read_text()[-3000:]}")
        time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, as its users do; whatever of its session is left after 30 s is killed."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def _environment(python: Path, folder: Path) -> dict[str, str]:
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "WANDB_MODE": "offline", "RAY_AUTH_MODE": "disabled"}
    settings["RAY_TMPDIR"] = str(folder)
    # Ray takes the host's outer address unless it believes that it cannot form a cluster; then it stays on loopback.
    settings["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    return os.environ | settings | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _collecting(printed: str, rollouts: int) -> float:
    """Seconds of collecting, from the last state of the progress bar."""
    *_, last = _PROGRESS.finditer(printed)
    return rollouts / float(last[1]) if last[2] == "it/s" else rollouts * float(last[1])


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _descendants(root: int) -> list[int]:
    parents = {int(entry.name): _stat(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found = [root]
    for pid in found:  # grows while it is walked: breadth first
        found += [child for child, fields in parents.items() if fields and int(fields[1]) == pid]
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_of(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _part(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return REST
    if not command.rstrip("\0").endswith("app.py"):
        return REST
    return next((part for mark, part in PARTS.items() if mark in command), REST)
