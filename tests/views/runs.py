"""A small run as views get it: a rewards frame, and callables for what is read one by one."""

from __future__ import annotations

from typing import Any

import pandas as pd

from gymkit.errors import StoreError
from gymkit.views.transcript import Transcript

STATUSES = ("scored", "masked", "failed", "missing")


def rewards(tasks: int = 3, repeats: int = 2, **columns: Any) -> pd.DataFrame:
    """``tasks`` × ``repeats`` rollouts whose status goes round; scored ones have 0, 0.25, 0.5 … in turn."""
    keys = [(task, rollout) for task in range(tasks) for rollout in range(repeats)]
    status = [STATUSES[number % 4] for number in range(len(keys))]
    frame = pd.DataFrame(keys, columns=["task_index", "rollout_index"], dtype="Int64")
    frame["task_id"] = pd.array([f"task/{task}" for task, _ in keys], dtype="string")
    frame["status"] = pd.Categorical(status, categories=list(STATUSES))
    reward = [(number % 5) / 4 if name == "scored" else None for number, name in enumerate(status)]
    frame["reward"] = pd.array(reward, dtype="Float64")
    kinds = {"masked": "judge_failed", "failed": "timeout"}
    frame["failure_kind"] = pd.Categorical([kinds.get(name) for name in status], categories=["judge_failed", "timeout"])
    frame["steps"] = pd.array(range(len(keys)), dtype="Int64")
    return frame.assign(**columns)


def trajectory(task: int, rollout: int, *texts: str) -> pd.DataFrame:
    """A conversation of messages."""
    rows = [
        {
            "task_index": task,
            "rollout_index": rollout,
            "item_index": index,
            "kind": "message",
            "role": "user",
            "text": t,
        }
        for index, t in enumerate(texts)
    ]
    return pd.DataFrame(rows, dtype=object)


class Store:
    """What is read one by one, and a note of what was asked for."""

    def __init__(self, texts: tuple[str, ...] = ("hello",), **fields: Any) -> None:
        self.asked: list[tuple[int, int]] = []
        self._texts = texts
        self._fields = fields

    def conversation(self, task: int, rollout: int) -> Transcript:
        self.asked.append((task, rollout))
        return Transcript(trajectory(task, rollout, f"I am {task}, {rollout}", *self._texts))

    def record(self, task: int, rollout: int) -> dict[str, Any]:
        if STATUSES[(task * 2 + rollout) % 4] == "missing":
            raise StoreError("it has no row")
        return {"_ng_task_index": task, "reward": 0.5, "verifier_note": "seen twice", **self._fields}
