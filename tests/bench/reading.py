"""Reading a run: gymkit's frames against ``pandas.read_json``, and against Inspect AI on the same conversations.

``python -m tests.bench.reading`` writes a run of 100,000 rollouts into a temporary folder (about 340 MB and 90 MB of
plan), reads it in one process per contender, and prints seconds and peak memory of each with the ratios. Inspect AI is
measured when ``GYMKIT_INSPECT_PYTHON`` names a Python that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.harness import table
from tests.frames.samples import Row, conversation, nemo, ours, planned, write_run

REPEATS = 4
TIMEOUT = 900
INSPECT = Path(__file__).with_name("reading_inspect.py")


def results(count: int, row: Callable[..., Row]) -> Iterator[Row]:
    """``count`` result rows, each with its own prompt, four rollouts a task, one to four calls."""
    for number in range(count):
        task, rollout = divmod(number, REPEATS)
        items = conversation(1 + number % 4)
        yield row(task, rollout, reward=float(number % 3 == 0), items=items)


def write(folder: Path, count: int, row: Callable[..., Row]) -> Path:
    """Write a complete run of ``count`` rollouts; returns the path of its main file."""
    folder.mkdir(parents=True)
    plan = (planned(*divmod(number, REPEATS)) for number in range(count))
    return write_run(folder, results(count, row), failures=[], plan=plan)


def peak_megabytes() -> float:
    """The most memory that this process has held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss also counts what the parent held before exec
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1000
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1000


def read_rewards(path: Path) -> list[Any]:
    """The rewards frame."""
    from gymkit.frames import rewards
    from gymkit.frames.records import Records

    return [rewards.frame(Records(path))]


def read_rewards_and_trajectories(path: Path) -> list[Any]:
    """The rewards frame and the trajectories frame."""
    from gymkit.frames import rewards, trajectories
    from gymkit.frames.records import Records

    records = Records(path)
    return [rewards.frame(records), trajectories.frame(records)]


def read_json(path: Path) -> list[Any]:
    """pandas alone."""
    import pandas as pd

    return [pd.read_json(path, lines=True)]


READERS = {
    "gymkit, one rollout": read_rewards_and_trajectories,
    "gymkit rewards": read_rewards,
    "gymkit rewards + trajectories": read_rewards_and_trajectories,
    "pandas.read_json": read_json,
}


@dataclass(frozen=True)
class Reading:
    """What one process took after its imports: wall clock and ``cpu`` in seconds, ``peak`` and ``frames`` in MB."""

    who: str
    seconds: float
    cpu: float
    peak: float
    frames: float
    rows: int

    def cells(self) -> list[str]:
        """Its line of the table."""
        return [
            self.who,
            f"{self.seconds:.2f}",
            f"{self.cpu:.2f}",
            f"{self.peak:.0f}",
            f"{self.frames:.0f}",
            f"{self.rows:,}",
        ]


def measure_here(who: str, path: Path) -> Reading:
    """Read ``path`` in this process."""
    import pandas as pd

    import gymkit.frames.rewards
    import gymkit.frames.trajectories

    assert pd and gymkit.frames.trajectories
    started, cpu = time.perf_counter(), time.process_time()
    frames = READERS[who](path)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    peak = peak_megabytes()
    size = sum(float(frame.memory_usage(deep=who != "pandas.read_json").sum()) for frame in frames) / 1e6
    return Reading(who, seconds, cpu, peak, size, sum(len(frame) for frame in frames))


def measure(who: str, path: Path) -> Reading:
    """Read ``path`` in a process of its own, twice; the quicker one counts, since others use the machine too."""
    command = [sys.executable, "-m", "tests.bench.reading", "--measure", who, "--path", str(path)]
    return min((_reading(command) for _ in range(2)), key=lambda reading: reading.seconds)


def measure_inspect(python: str, path: Path) -> Reading:
    """Have Inspect AI write a log of the same conversations, and read it in a process of its own."""
    log = path.with_suffix(".eval")
    subprocess.run([python, str(INSPECT), "write", str(path), str(log)], check=True, timeout=TIMEOUT)
    return min((_reading([python, str(INSPECT), "read", str(log)]) for _ in range(2)), key=lambda it: it.seconds)


def _reading(command: Sequence[str]) -> Reading:
    done = subprocess.run(command, check=True, timeout=TIMEOUT, stdout=subprocess.PIPE)
    return Reading(**json.loads(done.stdout.splitlines()[-1]))


def compare(ours_: Reading, other: Reading, floor: float) -> str:
    """One sentence: how much faster, and with which share of the memory."""
    faster, cheaper = other.seconds / ours_.seconds, other.cpu / ours_.cpu
    speed = f"{faster:.1f} times as fast as {other.who} ({cheaper:.1f} times by CPU time)"
    held = f"{(ours_.peak - floor) / max(ours_.frames, 1):.1f} times its frames above the floor"
    return f"{ours_.who}: {speed}, in {ours_.peak / other.peak:.0%} of its peak memory ({held})"


def report(title: str, readings: Sequence[Reading]) -> None:
    """Print a table and the comparison of the second and the last line; the first is the floor."""
    head = ["contender", "seconds", "CPU seconds", "peak MB", "frames MB", "rows"]
    print(f"\n{title}\n\n{table(head, [reading.cells() for reading in readings])}\n")
    print(compare(readings[1], readings[-1], readings[0].peak), flush=True)


def main() -> None:
    """Run the benchmark, or with ``--measure`` one contender of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=100_000, help="rollouts of the first table")
    parser.add_argument("--items", type=int, default=10_000, help="rollouts of the second table")
    parser.add_argument("--measure", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(vars(measure_here(asked.measure, asked.path))))
        return
    with tempfile.TemporaryDirectory() as folder:
        floor = measure("gymkit, one rollout", write(Path(folder) / "floor", 1, nemo))
        path = write(Path(folder) / "rewards", asked.rollouts, nemo)
        title = f"{asked.rollouts:,} rollouts of NeMo Gym's form, main file {path.stat().st_size / 1e6:.0f} MB"
        report(title, [floor, measure("gymkit rewards", path), measure("pandas.read_json", path)])
        path = write(Path(folder) / "items", asked.items, ours)
        title = f"{asked.items:,} rollouts of our form, main file {path.stat().st_size / 1e6:.0f} MB"
        python = os.environ.get("GYMKIT_INSPECT_PYTHON")
        both = measure("gymkit rewards + trajectories", path)
        report(title, [floor, both, measure_inspect(python, path) if python else measure("pandas.read_json", path)])


if __name__ == "__main__":
    main()
