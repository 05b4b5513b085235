"""What gymkit keeps of a rollout that an environment server drove, from what the agent reported of its session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ERRORS = ("undeclared", "malformed", "failed")


def facts_of(response: Mapping[str, Any], observations: Any) -> dict[str, Any]:
    """The ``gymkit`` object of a row: how it ended, and, where the agent observed itself, steps and executed calls.

    ``observations`` is NeMo Gym's ``AgentObservationBundle`` of a session with one activation, of any agent, or None.
    """
    facts: dict[str, Any] = {"termination_reason": _ended(response)}
    records = observations.get("records") if isinstance(observations, Mapping) else None
    if not isinstance(records, list):
        return facts
    invocations = [record for record in records if record.get("kind") == "agent_invocation"]
    if len(invocations) == 1 and (steps := len(invocations[0].get("model_calls") or ())):
        facts["steps"] = steps
    tools = [record for record in records if record.get("kind") == "tool_call"]
    if calls := list(_calls(response["output"], tools)):
        facts["calls"] = calls
    return facts


def _ended(response: Mapping[str, Any]) -> str:
    if response.get("incomplete_details") or response.get("status") == "incomplete":
        return "incomplete"
    last = response["output"][-1] if response["output"] else {}
    return "message" if last.get("type") == "message" else "max_steps"


def _calls(output: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
    """One entry per observed call: where its output stands, the step that asked for it, what was wrong, how long."""
    positions = {item["call_id"]: index for index, item in enumerate(output) if item["type"] == "function_call_output"}
    steps = _steps(output)
    for record in tools:
        position = positions.get(record.get("tool_call_id"))
        if position is None:
            continue
        error = record.get("error_type") if record.get("status") == "failed" else None
        yield {
            "item": position,
            "step": steps[position],
            "error": error if error in _ERRORS or error is None else "failed",
            "seconds": round((record.get("duration_ms") or 0.0) / 1000, 6),
        }


def _steps(output: list[dict[str, Any]]) -> list[int]:
    """The reply that each item belongs to, from 1: a new one begins after the outputs of the one before."""
    steps, step, answered = [], 1, False
    for item in output:
        is_output = item["type"] == "function_call_output"
        if answered and not is_output:
            step += 1
        answered = is_output
        steps.append(step)
    return steps
