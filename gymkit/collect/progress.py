"""How far a run is: numbers that the collector sets and a display reads whenever it likes, from any thread."""

from __future__ import annotations

import time
from collections.abc import Callable

Key = tuple[int, int]
"""A rollout: (task index, rollout index)."""


class Progress:
    """The state of one run. Nothing here prints, and nothing here waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.total = 0
        """Rollouts planned."""
        self.scored = 0
        """Rollouts with a measured reward."""
        self.masked = 0
        """Rollouts whose reward is not a measurement."""
        self.failed = 0
        """Rollouts that failed and will not be tried again in this run."""
        self.unscored = 0
        """Rollouts that ended without a reward and without a failure."""
        self.reward_sum = 0.0
        """Sum of the measured rewards."""
        self.reward_min = float("inf")
        """Smallest measured reward."""
        self.reward_max = float("-inf")
        """Largest measured reward."""
        self.in_flight: dict[Key, float] = {}
        """Rollouts that were sent and have not come back, with their start on the clock."""
        self.started_at: float | None = None
        """When this run began, in unix seconds."""
        self._began = 0.0
        self._ended: float | None = None
        self._before = 0

    @property
    def done(self) -> int:
        """Rollouts that need nothing more in this run."""
        return self.scored + self.masked + self.failed + self.unscored

    @property
    def mean_reward(self) -> float | None:
        """Mean over the scored rollouts, None before the first."""
        return self.reward_sum / self.scored if self.scored else None

    @property
    def seconds(self) -> float:
        """Wall clock since the run began, standing still once it ended."""
        if self.started_at is None:
            return 0.0
        return (self._clock() if self._ended is None else self._ended) - self._began

    @property
    def rate(self) -> float | None:
        """Rollouts finished per second in this run, None before the first."""
        finished, seconds = self.done - self._before, self.seconds
        return finished / seconds if finished > 0 and seconds > 0 else None

    @property
    def eta(self) -> float | None:
        """Seconds left at the rate so far, None before the first rollout finished."""
        rate = self.rate
        return (self.total - self.done) / rate if rate else None

    @property
    def running(self) -> bool:
        """Whether the run has begun and not ended."""
        return self.started_at is not None and self._ended is None

    def silent(self, seconds: float) -> list[str]:
        """Name the rollouts that were sent at least ``seconds`` ago and have not come back, the longest first."""
        now = self._clock()
        waiting = sorted((sent, key) for key, sent in list(self.in_flight.items()) if now - sent >= seconds)
        return [f"task {task}, rollout {rollout}" for _, (task, rollout) in waiting]

    def begin(self, total: int) -> None:
        """The run begins; what is already counted came from an earlier one."""
        self.total = total
        self._before = self.done
        self._began = self._clock()
        self.started_at = time.time()

    def end(self) -> None:
        """The run has ended."""
        self._ended = self._clock()

    def sent(self, key: Key) -> None:
        """A rollout was sent."""
        self.in_flight[key] = self._clock()

    def returned(self, key: Key) -> None:
        """A rollout came back or was given up."""
        self.in_flight.pop(key, None)

    def score(self, reward: float) -> None:
        """Count a measured reward."""
        self.scored += 1
        self.reward_sum += reward
        self.reward_min = min(self.reward_min, reward)
        self.reward_max = max(self.reward_max, reward)

    def __repr__(self) -> str:
        return f"<Progress {self.done} of {self.total}, {self.failed} failed, {self.masked} masked>"
