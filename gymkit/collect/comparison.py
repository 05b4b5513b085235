"""Two runs' metrics side by side, with NeMo Gym's names and numbers (``gym eval compare`` 0.7.0).

Its interval is Welch's over whole repeats: how far the two means would move if the same tasks were run again. How far
they would move on other tasks is another question, which :mod:`gymkit.stats` answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gymkit.collect.flips import Flips, flips_of, number_of
from gymkit.collect.metrics_file import Agent
from gymkit.errors import ConfigError
from gymkit.servers.statistics import is_primary


@dataclass(frozen=True)
class Value:
    """A metric of one run; what the run did not record is None."""

    value: float
    """The metric."""
    ci_low: float | None
    """Lower end of the interval over repeats."""
    ci_high: float | None
    """Upper end of it."""
    se_across_repeats: float | None
    """Standard error over repeats."""
    mean_across_repeats: float | None
    """Mean over repeats."""
    std_err_across_runs: float | None
    """Standard error that the benchmark computed."""

    @property
    def point(self) -> float:
        """What is compared: the mean over repeats where there is one."""
        return self.value if self.mean_across_repeats is None else self.mean_across_repeats


@dataclass(frozen=True)
class Candidate(Value):
    """A metric of the run that is compared with the baseline."""

    delta: float | None = None
    """Candidate minus baseline."""
    delta_pct: float | None = None
    """The same in percent of the baseline."""
    delta_ci_low: float | None = None
    """Lower end of Welch's 95 % interval over repeats."""
    delta_ci_high: float | None = None
    """Upper end of it."""


@dataclass(frozen=True)
class Metric:
    """One metric in both runs."""

    metric: str
    """Its name."""
    is_key_metric: bool
    """Whether either run calls it a key metric."""
    present_in: list[str]
    """``baseline``, ``candidate[0]``."""
    baseline: Value | None
    """There, or None."""
    candidates: list[Candidate | None]
    """Here, one for each candidate; NeMo Gym takes one."""


@dataclass(frozen=True)
class AgentComparison:
    """Two agents, or one in two runs."""

    baseline_agent: str
    """Name there."""
    candidate_agents: list[str]
    """Name here."""
    baseline_task_count: int
    """Tasks with a score there."""
    candidate_task_counts: list[int]
    """Tasks with a score here."""
    baseline_repeat_count: int | None
    """Rollouts of a task there."""
    candidate_repeat_counts: list[int | None]
    """Rollouts of a task here."""
    metrics: list[Metric]
    """Every primary metric of either."""
    flips: list[Flips]
    """By task."""
    notes: list[str]
    """What to know."""


def compare_agents(baseline: Agent, candidate: Agent) -> AgentComparison:
    """Compare two agents' metrics. Raises ConfigError when they have no metric in common."""
    rows = _metrics(baseline, candidate)
    if not any(row.baseline and row.candidates[0] for row in rows):
        raise ConfigError(
            f"{baseline.name} and {candidate.name} have no metric in common: "
            f"{_listed(baseline)} there, {_listed(candidate)} here"
        )
    return AgentComparison(
        baseline_agent=baseline.name,
        candidate_agents=[candidate.name],
        baseline_task_count=len(baseline.groups),
        candidate_task_counts=[len(candidate.groups)],
        baseline_repeat_count=baseline.num_repeats,
        candidate_repeat_counts=[candidate.num_repeats],
        metrics=rows,
        flips=[flips_of(baseline.groups, candidate.groups)],
        notes=_notes(baseline, candidate, rows),
    )


def _listed(agent: Agent) -> str:
    return ", ".join(sorted(name for name in agent.all_metrics if is_primary(name))[:5]) or "none"


def _notes(baseline: Agent, candidate: Agent, rows: Iterable[Metric]) -> list[str]:
    notes = []
    there, here = baseline.num_repeats, candidate.num_repeats
    if there is not None and here is not None and there != here:
        notes.append(f"{there} rollouts a task in the baseline, {here} in the candidate: metrics named by k differ.")
    for run, role in ((baseline, "baseline"), (candidate, "candidate")):
        counts = {entry.get("sample_count") for entry in run.repeats}
        if len(counts) > 1 or any(entry.get("missing_count", 0) for entry in run.repeats):
            notes.append(f"The {role}'s repeats lack tasks, so its intervals mix repeats with tasks.")
    if not any(number_of(run.metrics.get("ci_low_95_across_repeats/mean/reward")) for run in (baseline, candidate)):
        notes.append("Neither run has intervals over repeats, which need two rollouts a task.")
    if one_sided := sum(len(row.present_in) < 2 for row in rows):
        notes.append(f"{one_sided} metrics are in one of the runs only.")
    return notes


def _metrics(baseline: Agent, candidate: Agent) -> list[Metric]:
    there, here = baseline.all_metrics, candidate.all_metrics
    keys = {*baseline.key_metrics, *candidate.key_metrics}
    names = dict.fromkeys(name for side in (there, here) for name in side if number_of(side[name]) is not None)
    rows = []
    for name in filter(is_primary, names):
        old, new = _value(there, name), _value(here, name)
        sides = [label for label, side in (("baseline", old), ("candidate[0]", new)) if side]
        changed = _changed(new, old, _welch(baseline, candidate, name)) if new else None
        rows.append(Metric(name, name in keys, sides, old, [changed]))
    return rows


def _value(metrics: Mapping[str, Any], name: str) -> Value | None:
    value = number_of(metrics.get(name))
    if value is None:
        return None
    over = ("ci_low_95", "ci_high_95", "se", "mean")
    low, high, error, mean = (number_of(metrics.get(f"{stat}_across_repeats/{name}")) for stat in over)
    return Value(value, low, high, error, mean, number_of(metrics.get(f"{name}/std_err_across_runs")))


def _changed(new: Value, old: Value | None, interval: tuple[float, float] | None) -> Candidate:
    if old is None:
        return Candidate(**vars(new))
    delta = new.point - old.point
    percent = delta / abs(old.point) * 100.0 if old.point else None
    low, high = interval or (None, None)
    return Candidate(**vars(new), delta=delta, delta_pct=percent, delta_ci_low=low, delta_ci_high=high)


def _welch(baseline: Agent, candidate: Agent, name: str) -> tuple[float, float] | None:
    """Welch's 95 % interval of candidate minus baseline, each repeat one observation; None without two of each."""
    recorded = f"mean_across_repeats/{name}"
    sides = [[number_of(entry.get(name)) for entry in run.repeats] for run in (candidate, baseline)]
    values = [[value for value in side if value is not None and math.isfinite(value)] for side in sides]
    if min(map(len, values)) < 2 or not all(
        number_of(run.metrics.get(recorded)) is not None for run in (baseline, candidate)
    ):
        return None
    import warnings

    from scipy.stats import ttest_ind  # slow to import, and only runs with repeats need it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of equal values, which have no interval
        found = ttest_ind(*values, equal_var=False).confidence_interval(confidence_level=0.95)
    return None if math.isnan(found.low) else (float(found.low), float(found.high))
