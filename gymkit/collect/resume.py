"""What an earlier run left on disk, and whether this run may go on from there."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gymkit.collect.fingerprint import differences
from gymkit.collect.plan import Plan
from gymkit.collect.progress import Key, Progress
from gymkit.collect.reply import is_number
from gymkit.collect.store import Store
from gymkit.errors import ResumeMismatch

log = logging.getLogger("gymkit")

ATTEMPTS_VARIABLE = "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"
"""Environment variable: attempts that a rollout gets over all runs, by default 3."""

_DEFAULT_ATTEMPTS = 3


@dataclass(slots=True)
class Past:
    """What is known of the planned rollouts; for a fresh run, nothing."""

    total: int
    """Rollouts planned."""
    done: set[Key] = field(default_factory=set)
    """Rollouts with a main row."""
    attempts: dict[Key, int] = field(default_factory=dict)
    """Rollouts without a main row: how many failure rows they have."""
    terminal: set[Key] = field(default_factory=set)
    """Rollouts that no retry can help."""
    again: frozenset[Key] | None = None
    """Rollouts that were chosen to be run again, whatever became of them, and no others; None for all."""

    def may_run(self, key: Key, cap: int) -> bool:
        """Whether a rollout is still to be tried, with at most ``cap`` attempts over all runs."""
        if self.again is not None:
            return key in self.again
        return key not in self.done and key not in self.terminal and self.attempts.get(key, 0) < cap


def attempt_cap() -> int:
    """Attempts that a rollout gets over all runs, from the environment."""
    text = os.environ.get(ATTEMPTS_VARIABLE)
    if text is None:
        return _DEFAULT_ATTEMPTS
    try:
        cap = int(text)
    except ValueError:
        cap = 0
    if cap < 1:
        log.warning(
            "%s must be a whole number from 1 on, not %r: taking %d", ATTEMPTS_VARIABLE, text, _DEFAULT_ATTEMPTS
        )
        return _DEFAULT_ATTEMPTS
    return cap


def key_of(row: Mapping[str, Any]) -> Key | None:
    """The rollout that a row belongs to, None for a row that does not say."""
    task, rollout = row.get("_ng_task_index"), row.get("_ng_rollout_index")
    return (task, rollout) if isinstance(task, int) and isinstance(rollout, int) else None


def look_back(store: Store, plan: Plan, progress: Progress, again: frozenset[Key] | None = None) -> Past:
    """Mend the files of an earlier run, make sure it is the same run, and read what is done; no row stays in memory.

    Results of the rollouts in ``again`` are set aside first. Counts the others into ``progress``. Raises
    ResumeMismatch that names each setting and the task that differ.
    """
    store.repair()
    planned = _planned(store, plan)
    if again is not None:
        store.set_aside(lambda row: key_of(row) in again)
    past = Past(len(planned), again=again)
    for line in store.results():
        key = key_of(line.row)
        if key in planned and key not in past.done:
            past.done.add(key)
            count_result(progress, line.row)
    for line in store.failed():
        key = key_of(line.row)
        if key in planned and key not in past.done:
            past.attempts[key] = past.attempts.get(key, 0) + 1
            if line.row.get("_ng_failure_terminal"):
                past.terminal.add(key)
    return past


def count_result(progress: Progress, row: Mapping[str, Any]) -> None:
    """Count a main row: masked, scored, or without a reward."""
    reward = row.get("reward")
    if row.get("mask_sample"):
        progress.masked += 1
    elif is_number(reward):
        progress.score(reward)
    else:
        progress.unscored += 1


def _planned(store: Store, plan: Plan) -> set[Key]:
    """The rollouts of the plan on disk, which is mended if it is this plan and has lost lines."""
    facts: Mapping[str, Any] = {}
    planned = set()
    for line in store.planned():
        facts = facts or line.row.get("gymkit") or {}
        if (key := key_of(line.row)) is not None:
            planned.add(key)
    path = store.paths.materialized
    if "run" not in facts:
        log.warning("%s names no configuration (NeMo Gym wrote it?): going on with its rows, unchecked", path)
        return planned
    if facts["run"] != plan.run:
        raise ResumeMismatch(str(store.paths.rollouts), _differences(store, plan, facts.get("config") or {}))
    if len(planned) == plan.total:
        return planned
    log.warning("%s lacks %d of its %d rollouts: written anew", path, plan.total - len(planned), plan.total)
    store.rewrite_plan(plan.rows())
    return {key for line in store.planned() if (key := key_of(line.row)) is not None}


def _differences(store: Store, plan: Plan, config: Mapping[str, Any]) -> list[str]:
    told = list(differences(config, plan.config))
    settings = [each for each in told if not each.startswith("tasks.digest:")]
    if settings:
        return settings
    place = plan.first_change(line.row for line in store.planned())
    return [f"the task at {place} was another one"] if place else told
