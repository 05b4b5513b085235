"""What the probes saw; the rules judge it and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gymkit.sdk.check.exchange import LADDER, Exchange
from gymkit.sdk.check.played import Played


class Blame(NamedTuple):
    """The rule that a broken call comes down to."""

    rule: str
    """Name of the rule."""
    exchange: Exchange
    """The call."""


@dataclass(slots=True)
class Evidence:
    """Everything that was tried, as far as the check came."""

    timeout: float
    """Seconds that one call could take."""
    budget: float
    """Seconds that the check could take."""
    max_steps: int
    """Calls of the service that one rollout could make."""
    concurrency: int
    """Rollouts in flight at most."""
    tools: list[str] = field(default_factory=list)
    """Names of the tools that the first task declares."""
    first: Played | None = None
    """The first task, played once."""
    again: list[Played] = field(default_factory=list)
    """The same task, played again: once where it went the same, else twice."""
    others: list[Played] = field(default_factory=list)
    """Other tasks, one after the other."""
    together: list[Played] = field(default_factory=list)
    """All of these at once, some twice and some with a marker."""
    together_seconds: float = 0.0
    """How long that took."""
    disturbed: dict[str, Played] = field(default_factory=dict)
    """The first task with its first tool call disturbed, by rule."""
    repeated: Exchange | None = None
    """The last request of the first rollout, sent once more."""
    bare: Exchange | None = None
    """The same without the service's cookies."""
    odd: dict[str, Exchange] = field(default_factory=dict)
    """Requests out of the ordinary, by name."""
    out_of_time: bool = False
    """Whether the check ended because its seconds were used up."""

    @property
    def alone(self) -> list[Played]:
        """The tasks that were played one after the other, each for the first time."""
        return [self.first, *self.others] if self.first else []

    @property
    def exchanges(self) -> list[Exchange]:
        """Their calls."""
        return [exchange for played in self.alone for exchange in played.exchanges]

    @property
    def sets_cookies(self) -> bool:
        """Whether the service set a cookie in its first rollout."""
        return bool(self.first and any(each.reply and each.reply.cookies() for each in self.first.exchanges))

    def blame(self) -> Blame | None:
        """The rule that the first broken call comes down to, None when no call broke."""
        for played in self.alone:
            if broken := played.broken:
                return Blame(self._cause(played, broken), broken)
        return None

    def _cause(self, played: Played, broken: Exchange) -> str:
        rule = LADDER[broken.rung]
        if broken is played.exchanges[0] or rule not in ("reachable", "status"):
            return rule
        answers_without = self.bare is not None and self.bare.error is None
        return "cookies" if played is self.first and broken.cookies and answers_without else "called again"

    @property
    def starts_clean(self) -> str:
        """How the first task went when it was played again: ``same``, ``worse``, ``different``, or empty for not tried.

        ``worse`` means that each repetition broke or got less than the first time; one worse than the first among
        several is no more than ``different``, since an agent that samples has good and bad days.
        """
        if not self.first or not self.again:
            return ""
        if all(each.same_as(self.first) and not each.broken for each in self.again):
            return "same"
        return "worse" if all(self._fell(self.first, each) for each in self.again) else "different"

    @staticmethod
    def _fell(before: Played, after: Played) -> bool:
        return bool(after.broken) or (after.reward or 0.0) < (before.reward or 0.0)

    @property
    def unchecked(self) -> str:
        """Why a rule without evidence has none."""
        if self.out_of_time:
            return f"the {self.budget:g} s of the check were used up: allow more with budget="
        if blame := self.blame():
            return f"first see to ‘{blame.rule}’"
        if self.first and not self.first.finished:
            return "first see to ‘finishes’"
        return "first see to ‘clean start’" if self.starts_clean == "worse" else "there was no occasion"

    def environments_fault(self) -> str | None:
        """What the environment broke, so that the service was not to blame and cannot be judged."""
        every: list[Any] = [*self.alone, *self.again, *self.together, *self.disturbed.values()]
        return next((fault for played in every if (fault := played.environments_fault)), None)
