"""Make the records in this folder anew, with NeMo Gym 0.7.0: see README.md.

Run it: ``GYMKIT_ANCHOR_PYTHON=… python -m tests.data.nemo_gym.make``
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.anchor import COUNTER, Anchor, anchor
from tests.bench.harness import Service, rows, service, write_rows

HERE = Path(__file__).parent
NAMES_WITHOUT_STEM = ("rollout_verdicts.jsonl", "quality_summary.json")
MIXED = ("", "wrong", "flaky", "notjson", "http500", "invalid", "nousage", "incomplete", "undeclared", "malformed")


def mixed_tasks() -> list[dict[str, Any]]:
    """One task for each way in which the service can behave."""
    return [rows(number + 1, mode)[number] for number, mode in enumerate(MIXED)]


def graded_tasks() -> list[dict[str, Any]]:
    """Six tasks: right, off by one and two, failing now and then, masked, and masked in the end."""
    tasks = rows(6)
    tasks[1]["expected_count"] += 1
    tasks[2]["expected_count"] -= 2
    tasks[3] = rows(4, "flaky")[3]
    tasks[4] = rows(5, "flaky")[4] | {"mask": True}
    tasks[5] |= {"mask": True, "difficulty": 3}
    return tasks


def collect(gym: Anchor, name: str, tasks: list[dict[str, Any]], *options: str, resume: bool = False) -> None:
    """One run of ``gym eval run`` (and one resume), then ``gym eval profile``, copied to the folder ``name``."""
    source = write_rows(gym.folder / f"{name}.jsonl", tasks)
    output = gym.folder / name / "rollouts.jsonl"
    for again in (False, True)[: 1 + resume]:
        # One rollout at a time, so that the service's "second of three" falls on the same rollouts each time.
        gym.collect(source, output, 1, *options, f"+resume_from_cache={str(again).lower()}")
    inputs = output.with_name("rollouts_materialized_inputs.jsonl")
    paths = (f"+materialized_inputs_jsonl_fpath={inputs}", f"+rollouts_jsonl_fpath={output}")
    gym.gym("eval", "profile", *paths, "++allow_partial_rollouts=true")
    shutil.rmtree(HERE / name, ignore_errors=True)
    shutil.copytree(output.parent, HERE / name)


def make(python: Path, target: Service, folder: Path) -> None:
    """Make all three sets."""
    with anchor(python, folder, target, 1, COUNTER) as gym:
        collect(gym, "success", rows(5))
        collect(gym, "mixed", mixed_tasks(), "+num_repeats=3", resume=True)
    place = folder / "resources_servers" / "graded_counter"
    place.mkdir(parents=True)
    shutil.copy(HERE / "graded_counter.py", place / "app.py")
    with anchor(python, folder, target, 1, "graded_counter") as gym:
        collect(gym, "graded", graded_tasks(), "+num_repeats=2")


def main() -> None:
    """Make the records and list them."""
    with tempfile.TemporaryDirectory(prefix="gymkit-records-") as name, service() as target:
        make(Path(os.environ["GYMKIT_ANCHOR_PYTHON"]), target, Path(name))
    for path in sorted(HERE.glob("*/*")):
        print(f"{path.stat().st_size:8} {path.relative_to(HERE)}")


if __name__ == "__main__":
    main()
