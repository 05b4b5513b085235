"""Which tasks changed between two runs, by NeMo Gym's rules: a task passes when more than half of its repeats do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Direction = Literal["pass_to_fail", "fail_to_pass", "changed"]
Group = Mapping[str, Any]
"""One task in a metrics file."""

SHOWN = 10
"""Flips of one direction whose rewards are listed."""

_MEAN, _MIN, _MAX = "mean/reward", "min/reward", "max/reward"
_PASS = 0.5


@dataclass(frozen=True)
class Flip:
    """A task that changed."""

    task_index: int
    """The task."""
    baseline_score: float
    """Mean reward over its repeats there."""
    candidate_score: float
    """The same here."""
    delta: float
    """Here minus there."""
    direction: Direction
    """``changed`` where rewards are not 0 and 1."""
    baseline_rewards: list[float] | None
    """Its rewards by repeat; None beyond the first ten of a direction, or where one has none."""
    candidate_rewards: list[float] | None
    """The same here."""


@dataclass(frozen=True)
class Flips:
    """The tasks of both runs, by number: the metrics know no other name of a task."""

    candidate_index: int
    """Always 0."""
    mode: Literal["binary", "continuous", "unavailable"]
    """Whether rewards are 0 and 1."""
    reason: str | None = None
    """Why there are none."""
    field: str = "reward"
    """What is looked at."""
    common_task_count: int = 0
    """Tasks of both."""
    baseline_only_task_count: int = 0
    """Tasks of the baseline only."""
    candidate_only_task_count: int = 0
    """Tasks of the candidate only."""
    pass_to_fail_count: int | None = None
    """Tasks that passed there and fail here (binary)."""
    fail_to_pass_count: int | None = None
    """The other way round (binary)."""
    tied_count: int | None = None
    """Tasks of which one run passed exactly half (binary)."""
    unchanged_count: int | None = None
    """Tasks that stayed."""
    net: int | None = None
    """Gained minus lost (binary)."""
    flips: tuple[Flip, ...] = ()
    """What changed, losses first, then by size."""


def flips_of(baseline: Iterable[Group], candidate: Iterable[Group]) -> Flips:
    """The tasks that changed from ``baseline`` to ``candidate``."""
    there, here = ({group["_ng_task_index"]: group for group in groups} for groups in (baseline, candidate))
    common = sorted(there.keys() & here.keys())
    counts: dict[str, Any] = {
        "common_task_count": len(common),
        "baseline_only_task_count": len(there.keys() - here.keys()),
        "candidate_only_task_count": len(here.keys() - there.keys()),
    }
    means = [(task, number_of(there[task].get(_MEAN)), number_of(here[task].get(_MEAN))) for task in common]
    scored = [(task, old, new) for task, old, new in means if old is not None and new is not None]
    if not scored:
        reason = "a run has no tasks" if not (there and here) else "no task of both has a reward"
        return Flips(0, "unavailable", reason=reason, **counts)

    def flip(task: int, old: float, new: float, direction: Direction) -> Flip:
        return Flip(task, old, new, new - old, direction, _rewards(there[task]), _rewards(here[task]))

    if not all(_is_binary(side[task]) for task, _, _ in scored for side in (there, here)):
        moved = [flip(task, old, new, "changed") for task, old, new in scored if old != new]
        return Flips(0, "continuous", unchanged_count=len(scored) - len(moved), flips=_ordered(moved), **counts)
    turned = [flip(task, old, new, "pass_to_fail") for task, old, new in scored if new < _PASS < old]
    gained = [flip(task, old, new, "fail_to_pass") for task, old, new in scored if old < _PASS < new]
    tied = sum(_PASS in (old, new) for _, old, new in scored)
    return Flips(
        0,
        "binary",
        pass_to_fail_count=len(turned),
        fail_to_pass_count=len(gained),
        tied_count=tied,
        unchanged_count=len(scored) - tied - len(turned) - len(gained),
        net=len(gained) - len(turned),
        flips=_ordered([*turned, *gained]),
        **counts,
    )


def _ordered(flips: Sequence[Flip]) -> tuple[Flip, ...]:
    order = sorted(flips, key=lambda flip: (flip.direction != "pass_to_fail", -abs(flip.delta), flip.task_index))
    seen: dict[str, int] = {}
    kept = []
    for flip in order:
        seen[flip.direction] = seen.get(flip.direction, 0) + 1
        bare = {**vars(flip), "baseline_rewards": None, "candidate_rewards": None}
        kept.append(flip if seen[flip.direction] <= SHOWN else Flip(**bare))
    return tuple(kept)


def _rewards(group: Group) -> list[float] | None:
    infos = sorted(group.get("rollout_infos") or (), key=lambda info: info.get("_ng_rollout_index", 0))
    rewards = [number_of(info.get("reward")) for info in infos]
    whole = [reward for reward in rewards if reward is not None]
    return whole if whole and len(whole) == len(rewards) else None


def _is_binary(group: Group) -> bool:
    """Whether the rewards of a task are 0 and 1; repeats that disagree still are, so the mean does not tell."""
    ends = [group[name] for name in (_MIN, _MAX) if group.get(name) is not None] or [group.get(_MEAN)]
    return all(number_of(end) in (0.0, 1.0) for end in ends)


def number_of(value: Any) -> float | None:
    """A JSON number as a float; None for anything else, true and false included."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
