"""What 1,000 rollouts in flight cost while the agent thinks: wall clock over the ideal, and memory for each.

The service takes one second a call, a counter rollout makes four calls, so the ideal is four seconds however many
are in flight. Memory is the growth of the process's peak over what it holds when warm (Linux, macOS).

Run it: ``python -m tests.bench.waiting [--in-flight 1000] [--latency 1.0]``
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

from tests.bench.harness import bodies, rows, service, table
from tests.bench.ours import collect


def peak_bytes() -> int:
    """The most memory that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measure(in_flight: int, latency: float, folder: Path) -> list[tuple[str, str]]:
    """One warm-up of ten rollouts at once, then ``in_flight`` of them."""
    tasks = rows(in_flight)
    ideal = len(bodies(tasks[0])) * latency
    with service() as quick:
        collect(tasks[:50], quick, 10, folder / "warm" / "rollouts.jsonl")
    with service(latency) as slow:
        before = peak_bytes()
        run = collect(tasks, slow, in_flight, folder / "rollouts.jsonl")
        grown = peak_bytes() - before
    return [
        ("rollouts in flight", f"{in_flight}"),
        ("wall clock", f"{run.seconds:.2f} s"),
        ("ideal", f"{ideal:.2f} s"),
        ("wall clock / ideal", f"{run.seconds / ideal:.2f}"),
        ("while collecting / ideal", f"{run.collecting / ideal:.2f}"),
        ("memory a rollout in flight", f"{grown / in_flight / 1000:.0f} kB"),
        ("CPU a rollout", f"{run.cpu['gymkit'] / in_flight * 1000:.2f} ms"),
    ]


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds a call")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gymkit-bench-") as name:
        print(table(("what", "measured"), measure(options.in_flight, options.latency, Path(name))))


if __name__ == "__main__":
    main()
