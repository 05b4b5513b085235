"""What ``gym eval compare`` (NeMo Gym 0.7.0) says of pairs of metrics files: see README.md.

Run it: ``GYMKIT_ANCHOR_PYTHON=… python -m tests.data.nemo_gym.make_compare``
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAIRS = (("mixed", "success"), ("success", "mixed"), ("mixed", "graded"), ("graded", "mixed"), ("mixed", "mixed"))
OURS = ("generated_at", "nemo_gym_version", "command", "baseline", "candidates", "warnings")
"""What differs between two programs, and from one machine to another."""

PROGRAM = """
import json, sys, warnings
warnings.simplefilter("ignore")
from nemo_gym.comparison.runner import build_comparison_result
from nemo_gym.comparison.schema import ComparisonConfig
for baseline, candidate in json.load(sys.stdin):
    config = ComparisonConfig(baseline_rollouts_jsonl_fpath=baseline, candidate_rollouts_jsonl_fpaths=[candidate])
    print(build_comparison_result(config, "").model_dump_json())
"""


def theirs(python: Path, pairs: Iterable[tuple[Path, Path]]) -> list[dict[str, Any]]:
    """The reports of pairs of main files, baseline first."""
    given = json.dumps([[str(baseline), str(candidate)] for baseline, candidate in pairs])
    done = subprocess.run([python, "-c", PROGRAM], input=given, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def told(report: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a report: without names of files and programs, and without sentences."""
    kept = {key: value for key, value in report.items() if key not in (*OURS, "gymkit")}
    for agent in kept["comparisons"]:
        agent.pop("notes")
        for flips in agent["flips"]:
            flips["reason"] = flips["reason"] is not None
    return kept


def main() -> None:
    """Write one file a pair."""
    paths = [(HERE / old / "rollouts.jsonl", HERE / new / "rollouts.jsonl") for old, new in PAIRS]
    reports = theirs(Path(os.environ["GYMKIT_ANCHOR_PYTHON"]), paths)
    for (old, new), report in zip(PAIRS, reports, strict=True):
        content = json.dumps(told(report), indent=1)
        (HERE / "compare" / f"{old}_{new}.json").write_text(content + "\n")


if __name__ == "__main__":
    main()
