"""``/aggregate_metrics``: what one environment server's rollouts amount to.

Keys and values are NeMo Gym's (0.7.0). Masked rollouts are in no statistic but the coverage keys; a missing reward is
missing, never zero. Metrics that a benchmark computes itself (pass@k and the like) are not part of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gymkit.errors import WireError
from gymkit.servers.performance import perf_summary
from gymkit.servers.statistics import (
    AGENT,
    ROLLOUT,
    TASK,
    Measured,
    Number,
    across_repeats,
    columns_of,
    describe,
    integral,
    repeat_level,
)

Row = Mapping[str, Any]
_ALONE = "agent"  # what NeMo Gym calls the one agent of a reply, in `sample`


def aggregate(verify_responses: Sequence[Row]) -> dict[str, Any]:
    """The reply of ``/aggregate_metrics``.

    ``verify_responses`` are result rows of one environment server; of ``response``, only ``usage`` is read. Returns
    ``group_level_metrics``, ``agent_metrics``, ``key_metrics``, ``perf_summary`` and ``repeat_level_metrics``. Raises
    WireError when a rollout comes twice.
    """
    _refuse_duplicates(verify_responses)
    found = coverage(verify_responses)
    reply: dict[str, Any] = {
        "group_level_metrics": [],
        "agent_metrics": dict(found),
        "key_metrics": dict(found),
        "perf_summary": perf_summary(verify_responses),
        "repeat_level_metrics": [],
    }
    scored = sorted((row for row in verify_responses if not row.get("mask_sample")), key=key_of)
    return reply | _quality(scored, verify_responses, found) if scored else reply


def _quality(scored: Sequence[Row], every: Sequence[Row], found: dict[str, int]) -> dict[str, Any]:
    rollouts = [measured(row, _ALONE) for row in scored]
    columns = columns_of(rollouts)
    whole = integral(rollouts, columns)
    repeats = repeat_level(rollouts, columns)
    metrics: dict[str, Any] = describe(rollouts, columns, whole) | across_repeats(repeats).get(_ALONE, {})
    metrics |= {**found, "num_repeats": len({key_of(row)[1] for row in every})}
    return {
        "group_level_metrics": _groups(scored, rollouts, columns, whole),
        "agent_metrics": metrics,
        "key_metrics": {name: metrics[name] for name in metrics if name.startswith("mean/")} | found,
        "repeat_level_metrics": [{name: entry[name] for name in entry if name != AGENT} for entry in repeats],
    }


def _groups(
    scored: Sequence[Row], rollouts: Sequence[Measured], columns: Sequence[str], whole: bool
) -> list[dict[str, Any]]:
    """One entry per task with a scored rollout, in task order."""
    tasks: dict[int, list[int]] = {}
    for place, each in enumerate(rollouts):
        tasks.setdefault(each.task, []).append(place)
    return [
        {TASK: task}
        | describe([rollouts[place] for place in places], columns, whole)
        | {"sample": {AGENT: {"name": _ALONE}}}
        | completion(len(places), len(places))
        | {"rollout_infos": [rollout_info(scored[place]) for place in places]}
        for task, places in tasks.items()
    ]


def key_of(row: Row) -> tuple[int, int]:
    """Task and rollout index of a row; each is 0 where the row has none."""
    return row.get(TASK, 0), row.get(ROLLOUT, 0)


def measured(row: Row, agent: str | None) -> Measured:
    """The numbers of a scored row: its own top-level ones and those of ``response.usage``, which win.

    Keys that begin with ``_`` and the flag ``mask_sample`` are no measurements.
    """
    task, rollout = key_of(row)
    flat = {name: value for name, value in row.items() if name != "mask_sample"} | _usage(row)
    return Measured(task, rollout, agent, _numbers(flat))


def rollout_info(row: Row) -> dict[str, Any]:
    """The entry of a scored row in ``rollout_infos``."""
    task, rollout = key_of(row)
    info = {"rollout_id": f"{task}:{rollout}", TASK: task, ROLLOUT: rollout}
    if "reward" in row:
        info["reward"] = row["reward"]
    own = {name: value for name, value in row.items() if name not in ("mask_sample", "reward", "response")}
    return info | _numbers(_usage(row), hidden=True) | _numbers(own)


def _usage(row: Row) -> dict[str, Any]:
    response = row.get("response")
    usage = response.get("usage") if isinstance(response, dict) else None
    return usage if isinstance(usage, dict) else {}


def _numbers(values: Row, hidden: bool = False) -> dict[str, Number]:
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in values.items()
        if isinstance(value, (int, float)) and (hidden or not name.startswith("_"))
    }


def completion(done: int, expected: int) -> dict[str, Number]:
    """How many of a task's ``expected`` rollouts are measured."""
    return {
        "num_rollouts": done,
        "expected_num_rollouts": expected,
        "missing_num_rollouts": expected - done,
        "reward_profile_completion_pct": 100.0 * done / expected,
    }


def coverage(rows: Iterable[Row]) -> dict[str, int]:
    """How much of ``rows`` the statistics rest on; empty when none is masked."""
    every = list(rows)
    scored = [row for row in every if not row.get("mask_sample")]
    if len(scored) == len(every):
        return {}
    tasks, with_score = ({key_of(row)[0] for row in some} for some in (every, scored))
    return {
        "coverage/measured_rollouts": len(scored),
        "coverage/masked_rollouts": len(every) - len(scored),
        "coverage/measured_tasks": len(with_score),
        "coverage/fully_masked_tasks": len(tasks - with_score),
    }


def _refuse_duplicates(rows: Iterable[Row]) -> None:
    twice = [key for key, count in Counter(map(key_of, rows)).items() if count > 1]
    if twice:
        shown = ", ".join(f"{task}:{rollout}" for task, rollout in twice[:10])
        raise WireError("verify_responses", [f"{len(twice)} rollouts come more than once (task:rollout {shown})"])
