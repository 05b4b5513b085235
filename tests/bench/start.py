"""How soon: a fresh Python to the first scored rollout, and ``import gymkit`` alone.

The alternative is NeMo Gym 0.7.0 (with GYMKIT_ANCHOR_PYTHON): its servers to ready, then five rows. The agent service
runs already, for both.

Run it: ``python -m tests.bench.start [--rounds 5]``
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gymkit.wire import codec
from tests.bench.anchor import anchor
from tests.bench.harness import Service, rows, service, table, write_rows

SECONDS = 60
COLLECT = """
import sys
import gymkit as gk
url, tasks, output = sys.argv[1:]
gk.Env("counter", tasks=tasks).rollouts(gk.RemoteAgent(url), output=output, progress=False)
"""
HEAVY = ("pandas", "numpy", "ipywidgets", "aiohttp", "starlette", "pydantic")
IMPORT = f"import sys, gymkit; print([name for name in {HEAVY} if name in sys.modules])"


def first_rollout(target: Service, tasks: Path, output: Path) -> tuple[float, float]:
    """Seconds from starting Python to the end of the first rollout, and to the end of the process."""
    began = time.time()
    command = [sys.executable, "-c", COLLECT, target.url, str(tasks), str(output)]
    subprocess.run(command, timeout=SECONDS, check=True)
    ended = time.time()
    facts = [codec.loads(line)["gymkit"] for line in output.read_bytes().splitlines()]
    return min(each["started_at"] + each["seconds"] for each in facts) - began, ended - began


def python(code: str) -> tuple[float, str]:
    """Seconds that a fresh Python takes for ``code``, and what it prints."""
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", code], timeout=SECONDS, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, run.stdout.strip()


def ours(rounds: int, target: Service, tasks: Path, folder: Path) -> list[tuple[str, str]]:
    """The best of ``rounds`` for each: other work on the machine only slows."""
    runs = [first_rollout(target, tasks, folder / f"ours{number}" / "rollouts.jsonl") for number in range(rounds)]
    bare = min(python("pass")[0] for _ in range(rounds))
    imported, loaded = min(python(IMPORT) for _ in range(rounds))
    return [
        ("gymkit: Python to the first scored rollout", f"{min(first for first, _ in runs):.2f} s"),
        ("gymkit: Python to five rows on disk and its end", f"{min(whole for _, whole in runs):.2f} s"),
        (
            "import gymkit, less Python itself",
            f"{(imported - bare) * 1000:.0f} ms, of {', '.join(HEAVY)} loads {loaded}",
        ),
    ]


def anchored(path: Path, target: Service, tasks: Path, folder: Path) -> list[tuple[str, str]]:
    """NeMo Gym's servers, then five rows."""
    with anchor(path, folder, target, 4) as running:
        measured = running.collect(tasks, folder / "theirs" / "rollouts.jsonl", 4)
        return [
            ("NeMo Gym 0.7.0: servers ready", f"{running.ready:.1f} s"),
            ("NeMo Gym 0.7.0: five rows after that", f"{measured.seconds:.1f} s"),
        ]


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gymkit-bench-") as name, service() as target:
        tasks = write_rows(Path(name) / "tasks.jsonl", rows(5))
        lines = ours(options.rounds, target, tasks, Path(name))
        if path := os.environ.get("GYMKIT_ANCHOR_PYTHON"):
            lines += anchored(Path(path), target, tasks, Path(name))
    print(table(("what", "measured"), lines))


if __name__ == "__main__":
    main()
