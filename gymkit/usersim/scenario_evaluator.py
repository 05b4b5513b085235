"""Judges scenarios: what their checks said, and, where there is a judge, the three axes that make the reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gymkit.usersim.evaluation import QUALITY_AXES, Evaluation, mean_quality
from gymkit.usersim.judge import EVALUATION, Judge
from gymkit.wire import codec

SCORER: Final = "checks"

_MEANING: Final = {
    "helpfulness": "did the assistant do what the user needed?",
    "accuracy": "was what it said right, and true to what its tools told it?",
    "coherence": "was it clear, consistent and in keeping with the conversation?",
}
_AXIS: Final = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}},
    "required": ["reasoning", "score"],
    "additionalProperties": False,
}
_SCHEMA: Final = {
    "type": "object",
    "properties": dict.fromkeys(QUALITY_AXES, _AXIS),
    "required": list(QUALITY_AXES),
    "additionalProperties": False,
}


class ScenarioEvaluator:
    """The evaluator. Without a judge, quality is the mean of the checks."""

    async def evaluate(self, row: Mapping[str, Any], result: Mapping[str, Any], judge: Judge | None) -> Evaluation:
        """See Evaluator."""
        checks: Mapping[str, Mapping[str, Any]] = result.get("checks") or {}
        if not result["conversation_status"]:
            return Evaluation({"axes": {}, "skipped": True, "skipped_reason": "simulation_failed"}, skipped=True)
        scores = {name: told["score"] for name, told in checks.items()}
        errors = [f"{name}: {told['error']}" for name, told in checks.items() if told["error"]]
        axes, cell = ({}, {"axes": {}}) if judge is None else await _judged(row, result, judge)
        problem = judge.faults.get(EVALUATION) if judge is not None else None
        block = {"scores": scores, "status_proposal": _proposal(scores), "error": "; ".join(errors) or None}
        known = [score for score in scores.values() if score is not None]
        by_checks = sum(known) / len(known) if known else None
        return Evaluation(
            cell=cell,
            axes=axes,
            quality=by_checks if judge is None else None if problem else mean_quality(axes),
            quality_problem=problem or ("there is neither a judge nor a check" if judge is None else None),
            scorer=SCORER if checks else None,
            scorer_state="error" if errors else "ok" if checks else "not_applicable",
            scorer_error=block["error"],  # type: ignore[arg-type]
            scorer_result=block if checks else None,
            proposal=_proposal(scores) if checks and not errors else None,
        )


def _proposal(scores: Mapping[str, float | None]) -> bool | None:
    """A check at zero fails the conversation; one that cannot tell leaves it open."""
    if any(score == 0 for score in scores.values()):
        return False
    return None if None in scores.values() else True


async def _judged(
    row: Mapping[str, Any], result: Mapping[str, Any], judge: Judge
) -> tuple[dict[str, float], dict[str, Any]]:
    wanted = {"type": "json_schema", "json_schema": {"name": EVALUATION, "schema": _SCHEMA}}
    spoken = await judge.ask([{"role": "user", "content": _prompt(row, result)}], {"response_format": wanted})
    if EVALUATION in judge.faults:
        return {}, {"axes": {}, "error": judge.faults[EVALUATION]}
    told: Mapping[str, Any] = codec.loads(spoken.message["content"].encode())
    axes = {axis: told[axis]["score"] / 5 for axis in QUALITY_AXES if axis in told}
    return axes, {"axes": {axis: {"judge_model": told[axis]} for axis in axes}}


def _prompt(row: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    goal = codec.loads(str(row["theme"]).encode())["description"]
    axes = "\n".join(f"- {axis}: {meaning}" for axis, meaning in _MEANING.items())
    return (
        "Judge the ASSISTANT of this conversation, not the user. Give each axis a whole number from 1 (very poor) to 5 "
        f"(excellent) with your reasoning.\n{axes}\n\nWhat the user wanted: {goal}\n\n"
        f"The conversation:\n{_lines(result['conversation_messages'])}"
    )


def _lines(messages: Sequence[Mapping[str, Any]]) -> str:
    said = []
    for each in messages:
        called = [
            f"{call['function']['name']}({call['function']['arguments']})" for call in each.get("tool_calls") or ()
        ]
        said.append(
            f"{each['role'].upper()}: {each.get('content') or ''}{' calls ' if called else ''}{', '.join(called)}"
        )
    return "\n".join(said)
