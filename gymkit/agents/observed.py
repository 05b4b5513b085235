"""What an agent saw of its own work in a session, in the form that environment servers record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gymkit.agents.trace import Trace
from gymkit.servers.correlation import ROOT

_STATUS = {"message": "completed", "calls": "completed", "error": "failed"}


@dataclass(frozen=True, slots=True)
class Invocation:
    """One activation of the agent."""

    task_input: Sequence[Any]
    """The conversation that it was given."""
    trace: Trace
    """What it did."""
    seconds: float
    """Wall clock."""
    error: str | None = None
    """Type of what ended it, None where it ended by itself."""


def bundle(
    source: str, model: str | None, invocations: Sequence[Invocation], *, by_session: bool = False
) -> dict[str, Any]:
    """NeMo Gym's ``AgentObservationBundle`` of a session: its invocations and their tool calls, with the gaps named.

    ``model`` is the model server's name; None for an agent that says nothing of its model. ``by_session`` says that
    its model calls name the invocation themselves, as their client's session.
    """
    records: list[dict[str, Any]] = []
    gaps: list[dict[str, Any]] = []
    for number, invocation in enumerate(invocations, start=1):
        handle = ROOT if number == 1 else f"activation-{number}"
        records += [_invocation(handle, invocation, model), *_tool_calls(handle, invocation.trace)]
        if model is None and not by_session:
            gaps.append({"code": "model_calls_unavailable", "invocation_id": handle})
    return {"source": source, "records": records, "gaps": gaps}


def _invocation(handle: str, invocation: Invocation, model: str | None) -> dict[str, Any]:
    trace = invocation.trace
    record = {
        "kind": "agent_invocation",
        "invocation_id": handle,
        "status": _STATUS.get(trace.termination_reason, "incomplete"),
        "duration_ms": invocation.seconds * 1000,
        "model_calls": [_reference(model, reply) for reply in trace.replies] if model else [],
        "conversation": [*invocation.task_input, *trace.output],
    }
    return record if invocation.error is None else {**record, "error_type": invocation.error}


def _reference(model: str, reply: str) -> dict[str, Any]:
    return {"model_ref": {"type": "responses_api_models", "name": model}, "response_id": reply}


def _tool_calls(handle: str, trace: Trace) -> list[dict[str, Any]]:
    names = {item["call_id"]: item["name"] for item in trace.output if item["type"] == "function_call"}
    return [_tool_call(handle, trace, call, ended, names) for call, ended in zip(trace.calls, trace.ends, strict=True)]


def _tool_call(
    handle: str, trace: Trace, call: Mapping[str, Any], ended: float, names: Mapping[str, str]
) -> dict[str, Any]:
    call_id = trace.output[call["item"]]["call_id"]
    record = {
        "kind": "tool_call",
        "invocation_id": handle,
        "tool_call_id": call_id,
        "tool_name": names[call_id],
        "started_at": ended - call["seconds"],
        "completed_at": ended,
        "duration_ms": call["seconds"] * 1000,
        "timing_source": "executor",
        "status": "failed" if call["error"] else "completed",
    }
    return {**record, "error_type": call["error"]} if call["error"] else record
