"""What a display says of a run that is going on, read once, as text and as HTML: the same facts in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from gymkit.views.html import Html, join, table, tag, visible

__all__ = ["SILENT_SECONDS", "Facts", "Readable", "clock"]

SILENT_SECONDS: Final = 60.0
"""A rollout that was sent this long ago and has not come back is named."""

_NAMES: Final = 3


class Readable(Protocol):
    """How far a run is; any object with these will do, and it is only ever read."""

    @property
    def total(self) -> int:
        """Rollouts planned, 0 while that is not known."""

    @property
    def done(self) -> int:
        """Rollouts that need nothing more."""

    @property
    def scored(self) -> int:
        """Rollouts with a measured reward."""

    @property
    def masked(self) -> int:
        """Rollouts whose reward is not a measurement."""

    @property
    def failed(self) -> int:
        """Rollouts that failed."""

    @property
    def unscored(self) -> int:
        """Rollouts that ended without a reward and without a failure."""

    @property
    def mean_reward(self) -> float | None:
        """Mean over the scored rollouts, None before the first."""

    @property
    def seconds(self) -> float:
        """Wall clock since the run began."""

    @property
    def rate(self) -> float | None:
        """Rollouts per second, None before the first."""

    @property
    def eta(self) -> float | None:
        """Seconds left, None while nobody knows."""

    @property
    def running(self) -> bool:
        """Whether the run has begun and not ended."""

    def silent(self, seconds: float, /) -> list[str]:
        """Name the rollouts that were sent at least ``seconds`` ago and have not come back."""


@dataclass(frozen=True)
class Facts:
    """One reading of a run."""

    total: int
    """Rollouts planned, 0 while that is not known."""
    done: int
    """Rollouts that need nothing more."""
    scored: int
    """Rollouts with a measured reward."""
    masked: int
    """Rollouts whose reward is not a measurement."""
    failed: int
    """Rollouts that failed."""
    unscored: int
    """Rollouts that ended without a reward and without a failure."""
    mean_reward: float | None
    """Mean over the scored rollouts."""
    seconds: float
    """Wall clock since the run began."""
    rate: float | None
    """Rollouts per second."""
    eta: float | None
    """Seconds left."""
    running: bool
    """Whether the run has begun and not ended."""
    silent: tuple[str, ...] = ()
    """Rollouts silent for ``SILENT_SECONDS``, the longest first."""
    stopping: bool = False
    """Whether somebody asked it to stop."""

    @classmethod
    def read(cls, progress: Readable, *, stopping: bool = False) -> Facts:
        """Read ``progress`` as it is now."""
        return cls(
            total=progress.total,
            done=progress.done,
            scored=progress.scored,
            masked=progress.masked,
            failed=progress.failed,
            unscored=progress.unscored,
            mean_reward=progress.mean_reward,
            seconds=progress.seconds,
            rate=progress.rate,
            eta=progress.eta,
            running=progress.running,
            silent=tuple(progress.silent(SILENT_SECONDS)) if progress.running else (),
            stopping=stopping,
        )

    @property
    def state(self) -> str:
        """In a few words: starting, running, stopping, or how it ended."""
        if self.running:
            return f"{'stopping …' if self.stopping else 'running'} {clock(self.seconds)}"
        if not self._begun:
            return "starting …"
        if self.done >= self.total:
            return f"finished in {clock(self.seconds)}"
        return f"stopped after {clock(self.seconds)}, {self.total - self.done:,} not run"

    def stats(self) -> list[tuple[str, str]]:
        """Return the numbers as (what, value) pairs."""
        mean = "none yet" if self.mean_reward is None else self._mean()
        unscored = [("without a reward", f"{self.unscored:,}")] if self.unscored else []
        pace = [("per second", _rate(self.rate)), ("left", clock(self.eta))] if self.running else []
        return [
            ("done", self._of_total()),
            ("failed", f"{self.failed:,}"),
            ("masked", f"{self.masked:,}"),
            *unscored,
            ("mean reward", mean),
            *pace,
        ]

    def silence(self) -> str:
        """Return a sentence that names the rollouts silent for long, empty when there are none."""
        if not self.silent:
            return ""
        names = "; ".join(self.silent[:_NAMES])
        more = f"; and {len(self.silent) - _NAMES:,} more" if len(self.silent) > _NAMES else ""
        return f"silent for over {SILENT_SECONDS:.0f} s: {names}{more}"

    def line(self) -> str:
        """Return everything in one line of plain text."""
        mean = "no reward yet" if self.mean_reward is None else f"reward {self._mean()}"
        unscored = f"{self.unscored:,} without a reward" if self.unscored else ""
        pace = [f"{_rate(self.rate)}/s", f"{clock(self.eta)} left"] if self.running else []
        counts = [f"{self._of_total()} done", f"{self.failed:,} failed", f"{self.masked:,} masked"]
        return visible(", ".join(filter(None, [*counts, unscored, mean, *pace, self.silence()])))

    def html(self, title: str) -> Html:
        """Return everything as a panel."""
        stats = self.stats()
        return tag(
            "div",
            tag("header", tag("strong", tag("bdi", title)), tag("span", self.state, class_="gk-quiet")),
            self._bar(),
            table([what for what, _ in stats], [[value for _, value in stats]]),
            tag("p", self.silence(), class_="gk-bad") if self.silent else "",
            class_="gk-progress",
        )

    @property
    def _begun(self) -> bool:
        return self.running or self.seconds > 0

    def _of_total(self) -> str:
        return f"{self.done:,} of {f'{self.total:,}' if self._begun else '?'}"

    def _mean(self) -> str:
        """The mean, never without its denominator."""
        return f"{self.mean_reward:#.3g} over {self.scored:,} scored"

    def _bar(self) -> Html:
        parts = [(name, getattr(self, name)) for name in ("scored", "masked", "unscored", "failed")]
        spans = [
            tag(
                "span", class_=f"gk-bar-{name}", style=f"width:{100 * count / self.total:.2f}%", title=f"{count} {name}"
            )
            for name, count in parts
            if count and self.total
        ]
        return tag(
            "div",
            join(spans),
            class_="gk-bar",
            role="progressbar",
            aria_label="rollouts done",
            aria_valuemin=0,
            aria_valuemax=self.total,
            aria_valuenow=self.done,
            aria_valuetext=f"{self.done} of {self.total}",
        )


def clock(seconds: float | None) -> str:
    """Return seconds as ``1:02:03`` or ``0:07``; ``?`` for None."""
    if seconds is None:
        return "?"
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def _rate(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"
