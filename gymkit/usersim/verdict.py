"""From what is known of a conversation to a reward and a mask. No call is made here, so every rule can be read off."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gymkit.usersim.audit import Report
from gymkit.usersim.evaluation import Evaluation
from gymkit.usersim.runtime import PROTOCOL
from gymkit.wire.failures import SHARED_KINDS

USER_FAULT: Final = "usersim:user_fault"
"""Kind of an episode that its simulated user spoiled."""

INCONCLUSIVE: Final = "usersim:scorer_inconclusive"
"""Kind of an episode whose scorer cannot tell."""


_NO_NAME: Final = re.compile(r"[^a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a reward does not count, or counts as zero."""

    kind: str | None
    """Name to group by."""
    reason: str | None
    """What happened, in words."""
    masked: bool
    """Whether the reward is no measurement of the assistant."""


_NOTHING: Final = Finding(None, None, False)


def kind_of(failure_class: Any) -> str:
    """The failure kind of one of User Sim's classes: as it is if the vocabulary has it, else under ``usersim:``."""
    name = str(failure_class or "simulation_failed")
    if name in SHARED_KINDS or ":" in name:
        return name
    return f"usersim:{_NO_NAME.sub('_', name.lower()).strip('_') or 'simulation_failed'}"


def simulation_finding(outcome: Mapping[str, Any]) -> Finding:
    """What a failed simulation means for the reward; nothing for one that did not fail."""
    assistant = outcome.get("failure_attribution") == "assistant_model"
    if outcome.get("status") != "failed" and not assistant:
        return _NOTHING
    reason = outcome.get("failure_detail") or outcome.get("failure_reason")
    return Finding(kind_of(outcome.get("failure_class")), str(reason) if reason else None, not assistant)


def assistants_fault(row: Mapping[str, Any], result: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """The verdict on an episode that the assistant ended by its own doing: a measured zero, nothing evaluated."""
    finding = simulation_finding(result["simulation_outcome"])
    evaluation = Evaluation(
        {"skipped": True, "skipped_reason": "the assistant ended the episode by its own doing"},
        scorer_state="not_applicable",
        skipped=True,
    )
    return _reply(row, result, digest, evaluation, None, finding, completed=False, passed=False)


def lost(kind: str, reason: str) -> dict[str, Any]:
    """The verdict on an episode whose session is gone: a masked zero."""
    return {
        "reward": 0.0,
        "mask_sample": True,
        "failure_kind": kind,
        "failure_reason": reason,
        "reward_components": {},
        "scenario_completed": False,
        "verifier_data": {"episode_interaction_protocol": PROTOCOL, "scenario_completed": False},
    }


def judged(
    row: Mapping[str, Any],
    result: Mapping[str, Any],
    digest: str,
    evaluation: Evaluation,
    error: str | None,
    report: Report | None,
) -> dict[str, Any]:
    """The verdict on an episode that was evaluated; ``error`` is what the evaluator ended with, if it did not answer.

    ``report`` is what is known of the simulated user; None where nobody looked.
    """
    passed = evaluation.passed
    completed = bool(result["conversation_status"]) and _both_spoke(result) and passed is True
    finding = _finding(result, evaluation, error, completed)
    if report is not None and report.spoiled and not finding.masked:
        finding = Finding(USER_FAULT, report.sentence(), True)
    return _reply(row, result, digest, evaluation, report, finding, completed=completed, passed=passed is True)


def _finding(result: Mapping[str, Any], evaluation: Evaluation, error: str | None, completed: bool) -> Finding:
    if evaluation.scorer_error is not None:
        return Finding("verifier_error", f"{evaluation.scorer}: {evaluation.scorer_error}", True)
    if error is not None:
        return Finding("verifier_error", error, True)
    if evaluation.scorer_state == "ok" and evaluation.passed is None:
        return Finding(INCONCLUSIVE, f"{evaluation.scorer} cannot tell whether the conversation passes", True)
    if completed and evaluation.quality is None and not evaluation.skipped:
        reason = evaluation.quality_problem or "the judge gave no score for helpfulness, accuracy and coherence"
        return Finding("judge_failed", reason, True)
    return simulation_finding(result["simulation_outcome"])


def _reply(
    row: Mapping[str, Any],
    result: Mapping[str, Any],
    digest: str,
    evaluation: Evaluation,
    report: Report | None,
    finding: Finding,
    *,
    completed: bool,
    passed: bool,
) -> dict[str, Any]:
    quality = evaluation.quality
    reward = quality if completed and quality is not None and not finding.masked else 0.0
    return {
        "reward": reward,
        "mask_sample": finding.masked,
        "failure_kind": finding.kind,
        "failure_reason": finding.reason,
        "reward_components": {
            "participants_completed": float(_both_spoke(result)),
            "conversation_status": float(bool(result["conversation_status"])),
            "scorer_applied": float(evaluation.scorer_state == "ok"),
            "scorer_pass": float(passed),
            "trajectory_evaluator_applied": float(not evaluation.skipped),
            "assistant_quality": quality or 0.0,
            **{f"quality.{axis}": score for axis, score in evaluation.axes.items()},
        },
        "scenario_completed": completed,
        "verifier_data": {
            "episode_interaction_protocol": PROTOCOL,
            "resolved_row_sha256": digest,
            "probe_type": row.get("probe_type"),
            "scorer_name": evaluation.scorer,
            "scorer_state": evaluation.scorer_state,
            "scorer_status_proposal": evaluation.proposal,
            "scorer_result": evaluation.scorer_result,
            "assistant_eval": evaluation.cell,
            "normalized_axis_scores": evaluation.axes,
            "scenario_completed": completed,
            **({} if report is None else {"user_audit": report.fields()}),
        },
    }


def _both_spoke(result: Mapping[str, Any]) -> bool:
    return {"user", "assistant"} <= {message.get("role") for message in result["conversation_messages"]}
