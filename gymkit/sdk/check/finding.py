"""A rule of the contract, and what a check found of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, get_args

from gymkit.sdk.check import excerpt

Seen = TypeVar("Seen", contravariant=True)

Result = Literal["fail", "warn", "pass", "skip"]
"""``fail``: rollouts fail or are wrong. ``warn``: they run, with a loss. ``skip``: there was nothing to judge."""

RESULTS: tuple[Result, ...] = get_args(Result)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a rule makes of the evidence."""

    result: Result
    """How it came out."""
    sent: str = ""
    """What the service was sent, shortened."""
    came: str = ""
    """What it answered, shortened; for a skipped rule, why it was skipped."""
    fix: str = ""
    """What to change, empty when there is nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the report."""

    rule: str
    """Name of the rule."""
    result: Result
    """How it came out."""
    sent: str
    """What the service was sent, shortened."""
    came: str
    """What it answered, shortened; for a skipped rule, why it was skipped."""
    why: str
    """Why the rule matters."""
    fix: str
    """What to change, empty when there is nothing."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[Seen]):
    """One rule: its name, why it matters, and how it is judged from what was seen."""

    name: str
    """Two words or so, the same in every report."""
    why: str
    """One sentence."""
    judge: Callable[[Seen], Judgement]
    """From the evidence to the result."""

    def find(self, seen: Seen) -> Finding:
        """The report's row for this rule."""
        found = self.judge(seen)
        sent, came, fix = map(excerpt.line, (found.sent, found.came, found.fix))
        return Finding(self.name, found.result, sent, came, self.why, fix)


def passed(came: str, sent: str = "") -> Judgement:
    """The rule is kept."""
    return Judgement("pass", sent, came)


def skipped(reason: str) -> Judgement:
    """The rule could not be judged."""
    return Judgement("skip", came=reason)
