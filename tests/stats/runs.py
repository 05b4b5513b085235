"""Runs to compute on, small and made in view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from hypothesis import settings

STEADY = settings(deadline=None)
"""For properties of numbers: a busy machine is no failure."""

FRAMES = settings(max_examples=15, deadline=None)
"""For properties of whole frames, which take some milliseconds each."""

STATUS = pd.CategoricalDtype(["scored", "masked", "failed", "missing"])


def run(*tasks: Sequence[float | str], ids: Sequence[str] | None = None) -> pd.DataFrame:
    """A ``rewards`` frame: one sequence a task, each a reward or the status of a rollout without one."""
    rows = [
        {
            "task_index": index,
            "rollout_index": place,
            "task_id": None if ids is None else ids[index],
            "status": cell if isinstance(cell, str) else "scored",
            "reward": pd.NA if isinstance(cell, str) else float(cell),
        }
        for index, rollouts in enumerate(tasks)
        for place, cell in enumerate(rollouts)
    ]
    columns = {
        "task_index": "Int64",
        "rollout_index": "Int64",
        "task_id": "string",
        "status": STATUS,
        "reward": "Float64",
    }
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def random_run(tasks: int, repeats: int, seed: int = 0, mean: float = 0.6, graded: bool = False) -> pd.DataFrame:
    """0/1 (or partial-credit) rewards of tasks that differ in difficulty; one rollout in ten failed or was masked."""
    generator = np.random.default_rng(seed)
    chance = np.random.default_rng(1).beta(2 * mean, 2 * (1 - mean), (tasks, 1))
    rewards = (generator.random((tasks, repeats)) < chance) * (generator.random((tasks, repeats)) if graded else 1.0)
    ends = generator.choice(["scored", "failed", "masked"], p=[0.9, 0.05, 0.05], size=(tasks, repeats))
    return run(*np.where(ends == "scored", rewards.astype(object), ends.astype(object)).tolist())
