"""How many counter rollouts a second: gymkit, NeMo Gym 0.7.0 and a bare client, against one instant service.

The bare client is the ceiling: aiohttp, which sends the same request bodies (made beforehand) and reads the replies;
no tools, no session, no verification, no files. NeMo Gym takes part when GYMKIT_ANCHOR_PYTHON names a Python that has
it. All use the same service process and the same rows.

Run it: ``python -m tests.bench.throughput [--rollouts 2000] [--in-flight 32 256]``
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.bench.anchor import anchor
from tests.bench.harness import Measurement, Service, bodies, rows, service, table, write_rows
from tests.bench.ours import collect, where_time_goes

BARE = "bare client"
ANCHOR = "NeMo Gym 0.7.0"
BARE_SECONDS = 120


def bare(tasks: Sequence[dict[str, Any]], target: Service, in_flight: int) -> Measurement:
    """Send every request of every task with ``in_flight`` conversations at once."""
    conversations = [bodies(row) for row in tasks]
    served, used, start = target.cpu(), time.process_time(), time.perf_counter()
    asyncio.run(asyncio.wait_for(_converse(iter(conversations), target.url, in_flight), BARE_SECONDS))
    seconds = time.perf_counter() - start
    cpu = {"client": time.process_time() - used, "service": target.cpu() - served}
    return Measurement(BARE, in_flight, len(tasks), seconds, seconds, cpu)


async def _converse(conversations: Iterator[list[bytes]], url: str, in_flight: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            for conversation in conversations:
                for body in conversation:
                    async with session.post(f"{url}/v1/responses", data=body, headers=headers) as reply:
                        reply.raise_for_status()
                        await reply.read()

        headers = {"content-type": "application/json"}
        await asyncio.gather(*(work() for _ in range(in_flight)))


def anchored(
    python: Path, tasks: Sequence[dict[str, Any]], target: Service, in_flight: Sequence[int]
) -> list[Measurement]:
    """NeMo Gym on the same rows, once for each number in flight."""
    with tempfile.TemporaryDirectory(prefix="gymkit-bench-") as name:
        folder = Path(name)
        source = write_rows(folder / "tasks.jsonl", tasks)
        with anchor(python, folder, target, max(in_flight)) as running:
            print(f"{ANCHOR}: servers ready after {running.ready:.1f} s", flush=True)
            return [
                _served(running.collect, target, source, folder / f"out{n}" / "rollouts.jsonl", n) for n in in_flight
            ]


def _served(collect: Any, target: Service, source: Path, output: Path, in_flight: int) -> Measurement:
    before = target.cpu()
    measured: Measurement = collect(source, output, in_flight)
    measured.cpu["service"] = target.cpu() - before
    return measured


def ours(tasks: Sequence[dict[str, Any]], target: Service, in_flight: int) -> Measurement:
    """gymkit on the same rows, into a folder that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="gymkit-bench-") as name:
        return collect(tasks, target, in_flight, Path(name) / "rollouts.jsonl")


def best(rounds: int, tasks: Sequence[dict[str, Any]], target: Service, in_flight: int) -> list[Measurement]:
    """The fastest of ``rounds`` runs of the bare client and of gymkit, taken in turn: other work only slows a run."""
    runs = [(bare(tasks, target, in_flight), ours(tasks, target, in_flight)) for _ in range(rounds)]
    return [min(some, key=lambda run: run.seconds) for some in zip(*runs, strict=True)]


def report(measured: Sequence[Measurement]) -> str:
    """Rates, ratios to the two alternatives, and CPU time by process."""
    found = {(m.who, m.in_flight): m for m in measured}

    def ratio(m: Measurement, other: str) -> str:
        peer = found.get((other, m.in_flight))
        return f"{m.rate / peer.rate:.2f}" if peer else "-"

    head = ("who", "in flight", "rollouts/s", "while collecting", f"x {ANCHOR}", f"x {BARE}", "CPU ms a rollout")
    lines = [
        (
            m.who,
            m.in_flight,
            f"{m.rate:.0f}",
            f"{m.collecting_rate:.0f}",
            ratio(m, ANCHOR),
            ratio(m, BARE),
            f"{_own_cpu(m):.2f}",
        )
        for m in sorted(measured, key=lambda m: m.in_flight)
    ]
    costs = [
        (m.who, m.in_flight, part, f"{used / m.rollouts * 1000:.2f}") for m in measured for part, used in m.cpu.items()
    ]
    return f"{table(head, lines)}\n\n{table(('who', 'in flight', 'process', 'CPU ms a rollout'), costs)}"


def _own_cpu(m: Measurement) -> float:
    """CPU milliseconds a rollout without the service's: what stays comparable when the machine is busy."""
    return sum(used for part, used in m.cpu.items() if part != "service") / m.rollouts * 1000


def breakdown(tasks: Sequence[dict[str, Any]], target: Service, in_flight: int) -> str:
    """Where gymkit's own time goes."""
    with tempfile.TemporaryDirectory(prefix="gymkit-bench-") as name:
        shares = where_time_goes(tasks, target, in_flight, Path(name) / "rollouts.jsonl")
    return table(("part of gymkit", "share"), [(part, f"{share:.0%}") for part, share in shares.items()])


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[32, 256])
    parser.add_argument("--rounds", type=int, default=3, help="runs of gymkit and the bare client; the best counts")
    options = parser.parse_args()
    tasks = rows(options.rollouts)
    with service() as target:
        ours(tasks[:5], target, 1)  # imports and first connections are the start benchmark's business
        measured = [each for flight in options.in_flight for each in best(options.rounds, tasks, target, flight)]
        shares = breakdown(tasks[:500], target, options.in_flight[0])
        if python := os.environ.get("GYMKIT_ANCHOR_PYTHON"):
            measured += anchored(Path(python), tasks, target, options.in_flight)
    print(f"{report(measured)}\n\n{shares}")


if __name__ == "__main__":
    main()
