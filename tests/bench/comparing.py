"""How long it takes to compare two runs of 10,000 rollouts, beside the textbook test that ignores tasks and repeats.

Run it: ``python -m tests.bench.comparing [--rounds 3]``; it prints seconds and the ratio to scipy's paired t test on
task means, which needs the same grouping and gives one p-value.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

from gymkit.stats import compare
from tests.bench.harness import table

SHAPES = ((10_000, 1), (2_500, 4))
"""(tasks, repeats)."""


def run(tasks: int, repeats: int, seed: int) -> pd.DataFrame:
    """A run with partial credit, tasks of different difficulty."""
    generator = np.random.default_rng(seed)
    difficulty = np.repeat(np.random.default_rng(0).uniform(size=tasks), repeats)
    return pd.DataFrame(
        {
            "task_index": np.repeat(np.arange(tasks), repeats),
            "rollout_index": np.tile(np.arange(repeats), tasks),
            "reward": np.clip(difficulty + generator.normal(0, 0.2, tasks * repeats), 0, 1),
        }
    )


def textbook(a: pd.DataFrame, b: pd.DataFrame) -> float:
    """The p-value of a paired t test on task means."""
    means = [each.groupby("task_index")["reward"].mean() for each in (a, b)]
    return float(ttest_rel(*means).pvalue)


def seconds(call: Callable[[], object], rounds: int) -> float:
    """The best of ``rounds``, in seconds of CPU."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    lines = []
    for tasks, repeats in SHAPES:
        a, b = run(tasks, repeats, 1), run(tasks, repeats, 2)
        ours, theirs = seconds(lambda a=a, b=b: compare(a, b), rounds), seconds(lambda a=a, b=b: textbook(a, b), rounds)
        lines.append((f"{tasks:,} tasks × {repeats}", f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.0f}"))
    print(table(("two runs of", "compare, s", "paired t test, s", "ratio"), lines))


if __name__ == "__main__":
    main()
