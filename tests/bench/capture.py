"""What recording costs: the same rollouts of ``SimpleAgent`` with evidence on their rows and without.

The model is a service in a process of its own that answers at once; a scripted model in this process is the worst
case, since nothing at all hides behind the model's time. Runs of both kinds alternate and the fastest of each counts:
other work only slows a run. CPU time is beside it, since it says more on a busy machine.

Run it: ``python -m tests.bench.capture [--rollouts 2000] [--in-flight 32 256] [--rounds 5]``
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymkit as gk
from tests.bench.harness import Measurement, rows, service, table
from tests.bench.service import decide

OFF = "without capture"
ON = "with capture"


def collect(
    model: gk.Model, tasks: Sequence[dict[str, Any]], in_flight: int, *, capture: bool
) -> tuple[Measurement, int]:
    """One run, and the bytes of its main file."""
    agent = gk.SimpleAgent(model, concurrency=in_flight)
    with tempfile.TemporaryDirectory(prefix="gymkit-bench-") as name:
        output = Path(name) / "rollouts.jsonl"
        used, start = time.process_time(), time.perf_counter()
        gk.Env("counter", tasks=tasks).rollouts(agent, output=output, capture=capture, progress=False)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        size = output.stat().st_size
    return Measurement(ON if capture else OFF, in_flight, len(tasks), seconds, seconds, {"gymkit": used}), size


def report(model: gk.Model, tasks: Sequence[dict[str, Any]], in_flight: int, rounds: int) -> list[tuple[object, ...]]:
    """Two lines of the table: without, and with what it costs."""
    runs = [[collect(model, tasks, in_flight, capture=capture) for capture in (False, True)] for _ in range(rounds)]
    best = [min(some, key=lambda run: run[0].seconds) for some in zip(*runs, strict=True)]
    cpu = [min(run[0].cpu["gymkit"] for run in some) for some in zip(*runs, strict=True)]
    lines = []
    for (m, size), used in zip(best, cpu, strict=True):
        slower, more = m.seconds / best[0][0].seconds - 1, used / cpu[0] - 1
        each = (f"{used / len(tasks) * 1000:.2f}", f"{more:+.0%}", f"{size / len(tasks) / 1000:.1f}")
        lines.append((model.name, m.who, in_flight, f"{m.rate:.0f}", f"{slower:+.0%}", *each))
    return lines


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[32, 256])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tasks = rows(options.rollouts)
    head = ("model", "who", "in flight", "rollouts/s", "time", "CPU ms a rollout", "CPU", "kB a row")
    lines = []
    with service() as target:
        for model in (gk.Model(f"{target.url}/v1", "service", api="responses"), gk.Model.scripted(decide)):
            for capture in (False, True):
                collect(model, tasks[:50], 1, capture=capture)  # imports and first connections
            for in_flight in options.in_flight:
                lines += report(model, tasks, in_flight, options.rounds)
    print(table(head, lines))


if __name__ == "__main__":
    main()
