"""What an evaluator says of one finished conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from gymkit.usersim.judge import EVALUATION, Judge

QUALITY_AXES: Final = ("helpfulness", "accuracy", "coherence")
"""The axes whose mean is the reward."""

ScorerState = Literal["ok", "error", "not_applicable"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Axes of quality, and the scorer of the probe."""

    cell: dict[str, Any]
    """The evaluator's whole answer."""
    axes: dict[str, float] = field(default_factory=dict)
    """Normalized scores by axis, from 0 to 1."""
    quality: float | None = None
    """Mean of the three axes that make the reward; None where one is missing."""
    quality_problem: str | None = None
    """Why the judge of quality cannot be believed."""
    scorer: str | None = None
    """Name of the probe's scorer; None for a probe without one."""
    scorer_state: ScorerState = "not_applicable"
    """Whether it could score."""
    scorer_error: str | None = None
    """Why it could not."""
    scorer_result: dict[str, Any] | None = None
    """Its whole answer."""
    proposal: bool | None = None
    """Whether the conversation passes; None for a scorer that cannot tell."""
    skipped: bool = False
    """Whether the evaluator had nothing to judge."""

    @property
    def passed(self) -> bool | None:
        """Whether the scorer lets the conversation pass; True where none applies, None where it cannot tell."""
        if self.scorer_state == "not_applicable":
            return True
        return self.proposal if self.scorer_state == "ok" else None


class Evaluator(Protocol):
    """Judges conversations."""

    async def evaluate(self, row: Mapping[str, Any], result: Mapping[str, Any], judge: Judge | None) -> Evaluation:
        """Judge ``result``, what became of the resolved ``row``. Whatever is raised is an error of the evaluator."""


def mean_quality(axes: Mapping[str, float]) -> float | None:
    """The mean of the axes that make the reward; None where one is missing."""
    scores = [axes.get(axis) for axis in QUALITY_AXES]
    return None if None in scores else sum(score for score in scores if score is not None) / len(scores)


def scorer_fault(judge: Judge) -> str | None:
    """Why the judge of a scorer failed, None if it did not."""
    faults = [
        f"{purpose}: {said}" for purpose, said in judge.faults.items() if purpose not in (EVALUATION, "user_audit")
    ]
    return "; ".join(faults) or None
