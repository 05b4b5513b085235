"""How a run ended, in numbers and in one sentence: the denominator stands before the mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cause:
    """Failures of one sort."""

    kind: str
    """Name to group by (``failure_kind``, or the failure's class)."""
    count: int
    """Rollouts that failed so in this run."""
    example: str
    """What the first of them said."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. ``str()`` is one sentence; ``scored + masked + failed + missing == expected``."""

    output: Path
    """The main file."""
    run: str
    """Fingerprint of the configuration."""
    expected: int
    """Rollouts planned."""
    scored: int
    """Rollouts with a measured reward."""
    masked: int
    """Rollouts whose reward is not a measurement."""
    failed: int
    """Rollouts with failed attempts and no result."""
    missing: int
    """Rollouts with neither a result nor a failure, results without a reward included."""
    mean: float | None
    """Mean reward of the scored rollouts, None without any."""
    bounds: tuple[float, float] | None
    """The mean if every other rollout had got 0, and 1; None where rewards are not within 0 and 1."""
    causes: tuple[Cause, ...]
    """What failed in this run, the most frequent first."""
    seconds: float
    """Wall clock of this run."""
    stopped: bool
    """Whether it was stopped before its end; a resume goes on from here."""

    @property
    def complete(self) -> bool:
        """Whether every planned rollout has a result."""
        return self.scored + self.masked == self.expected

    def __str__(self) -> str:
        return f"{self._counts()}: {self._score()}{self._rest()}"

    def _counts(self) -> str:
        parts = [f"{self.scored} of {self.expected} rollouts scored"]
        parts += [f"{count} {name}" for name, count in self._others() if count]
        return ("Stopped: " if self.stopped else "") + ", ".join(parts)

    def _others(self) -> Iterator[tuple[str, int]]:
        yield "masked", self.masked
        yield "failed", self.failed
        yield "missing", self.missing

    def _score(self) -> str:
        if self.mean is None:
            return "no mean reward"
        if self.scored == self.expected:
            return f"mean reward {self.mean:.4g}"
        if self.bounds is None:
            return f"mean reward {self.mean:.4g} over the scored ones"
        low, high = self.bounds
        over_all = f"between {low:.4g} and {high:.4g} over all {self.expected}"
        return f"mean reward {self.mean:.4g} over the scored ones, {over_all}"

    def _rest(self) -> str:
        if not self.causes:
            return ""
        listed = "; ".join(f"{cause.count} {cause.kind}, e.g. {cause.example}" for cause in self.causes)
        return f". Failures: {listed}"


def bounds_of_mean(reward_sum: float, scored: int, expected: int) -> tuple[float, float] | None:
    """The mean over ``expected`` rollouts if each one that is not scored had got 0, and 1; None for an empty run."""
    if not expected:
        return None
    return reward_sum / expected, (reward_sum + expected - scored) / expected
