"""The package's own evaluator, called once for each conversation with the scorer of its probe."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from gymkit.usersim.evaluation import Evaluation, ScorerState, mean_quality, scorer_fault
from gymkit.usersim.judge import EVALUATION, Judge
from gymkit.usersim.package import load
from gymkit.wire import codec

SCORERS: Final = {
    "financial_services": "financial_services",
    "identity_disclosure": "identity_disclosure",
    "safety_agentic": "safety_agentic",
    "safety_chat_pressure": "safety_chat_pressure",
    "sov_ai_dynamic": "sov_ai_dynamic",
    "sov_ai_facts": "sov_ai_facts",
    "sov_ai_multilingual_parity": "sov_ai_multilingual_parity",
    "tool_calling": "tool_use",
}
"""Probe to its scorer."""

_COLUMN: Final = "assistant_eval"
_ALIAS: Final = "judge_model"


def scorer_of(row: Mapping[str, Any]) -> str | None:
    """The scorer that goes with a row; health probes have one in their guarded variant only."""
    probe = str(row.get("probe_type") or "")
    if probe.startswith("health_"):
        return "health_disclosure_concealment" if row.get("probe_variant") == "guarded" else None
    return SCORERS.get(probe)


class PackageEvaluator:
    """The evaluator. ``tokens`` bounds the judge's replies, ``tokens_non_ascii`` those in dense scripts."""

    def __init__(self, *, tokens: int = 16_384, tokens_non_ascii: int = 32_768) -> None:
        self._tokens = (tokens, tokens_non_ascii)

    async def evaluate(self, row: Mapping[str, Any], result: Mapping[str, Any], judge: Judge | None) -> Evaluation:
        """See Evaluator. Raises MissingExtra, and what the package raises."""
        if judge is None:
            raise ValueError("the evaluator of the package usersim needs a judge (probe_scorer_model)")
        scorer = scorer_of(row)
        evaluator = await asyncio.to_thread(_evaluator, judge, scorer, self._tokens)
        generated = await evaluator.agenerate({**row, **result})
        cell: dict[str, Any] = codec.loads(generated[_COLUMN].encode("utf-8", "surrogatepass"))
        axes = _axes(cell)
        block = cell.get("scorers", {}).get(scorer) if scorer else None
        state, error = _state(block, judge)
        return Evaluation(
            cell=cell,
            axes=axes,
            quality=None if EVALUATION in judge.faults else mean_quality(axes),
            quality_problem=judge.faults.get(EVALUATION),
            scorer=scorer,
            scorer_state=state,
            scorer_error=error,
            scorer_result=block,
            proposal=block.get("status_proposal") if state == "ok" and isinstance(block, dict) else None,
            skipped=bool(cell.get("skipped")),
        )


def _state(block: Any, judge: Judge) -> tuple[ScorerState, str | None]:
    if not isinstance(block, dict) or not block:
        return "not_applicable", None
    from usersim.taxonomy.eval_cell import scorer_state

    state: ScorerState = scorer_state(block)
    if state == "error":
        return state, str(block.get("error"))
    if fault := scorer_fault(judge):
        return "error", fault
    return state, None


def _axes(cell: Mapping[str, Any]) -> dict[str, float]:
    """The normalized scores; one outside 0 to 1 is no score."""
    from usersim.taxonomy.eval_cell import normalize_axis_score, score_from_eval_cell

    found: dict[str, float] = {}
    for axis in cell.get("envelope", {}).get("axes", ()):
        score = score_from_eval_cell(cell, axis)
        value = None if score is None else float(normalize_axis_score(axis, score))
        if value is not None and math.isfinite(value) and 0 <= value <= 1:
            found[axis] = value
    return found


@cache
def _generator() -> Any:
    """The package's evaluator as a class that takes its models from a host."""
    load()
    from usersim.engine.evaluator.generator import TrajectoryEvaluatorGenerator

    class Hosted(TrajectoryEvaluatorGenerator):  # type: ignore[misc]
        """The evaluator with one judge."""

        def __init__(self, config: Any, judge: Judge) -> None:
            self._config = config
            self._judge = judge
            self._initialize()

        def get_model(self, model_alias: str) -> Judge:
            """The judge, whatever it is called."""
            return self._judge

    return Hosted


def _evaluator(judge: Judge, scorer: str | None, tokens: tuple[int, int]) -> Any:
    hosted = _generator()
    from usersim.engine.evaluator.config import TrajectoryEvaluatorConfig

    config = TrajectoryEvaluatorConfig(
        name=_COLUMN,
        judges=[{"alias": _ALIAS}],
        scorers=[scorer] if scorer else [],
        skip_if_existing=False,
        max_judge_tokens=tokens[0],
        max_judge_tokens_non_ascii=tokens[1],
    )
    return hosted(config, judge)
