"""A rollout as a trajectory in the ATIF format, version 1.7 (Agent Trajectory Interchange Format, of Harbor).

A step of the agent is one assistant message, its tool calls, and what came back. Nothing is left out for want of a
place: what ATIF has no field for stands under ``extra``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from gymkit import __version__
from gymkit.wire import codec
from gymkit.wire.responses import message_text

VERSION: Final = "ATIF-v1.7"
"""What ``schema_version`` says."""

Step = dict[str, Any]
_SOURCES: Final = {"system": "system", "developer": "system", "user": "user"}


def trajectory_of(row: Mapping[str, Any], *, session: str) -> dict[str, Any]:
    """The trajectory of a result row; ``session`` names the run that it is of."""
    key = f"{row.get('_ng_task_index')}:{row.get('_ng_rollout_index')}"
    response = row.get("response") or {}
    steps = _numbered(_steps(_asked(row), agent=False) + _steps(response.get("output") or [], agent=True), row)
    facts = {name: row[name] for name in ("reward", "mask_sample", "failure_kind", "reward_components") if name in row}
    document = {
        "schema_version": VERSION,
        "session_id": session,
        "trajectory_id": f"{session}:{key}",
        "agent": _agent(row, response),
        "steps": steps,
        "final_metrics": _totals(response.get("usage"), len(steps)),
        "extra": {"gymkit": {**facts, "rollout": key, "version": __version__}},
    }
    return {name: value for name, value in document.items() if value is not None}


def _agent(row: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    name = (row.get("agent_ref") or {}).get("name")
    agent: dict[str, Any] = {"name": str(name or "agent"), "version": "unknown"}
    if isinstance(response.get("model"), str):
        agent["model_name"] = response["model"]
    if tools := (row.get("responses_create_params") or {}).get("tools"):
        agent["tool_definitions"] = tools
    return agent


def _asked(row: Mapping[str, Any]) -> list[Any]:
    params = row.get("responses_create_params") or {}
    asked = params.get("input")
    items = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked or ())
    told = params.get("instructions")
    return [{"role": "system", "content": told}, *items] if isinstance(told, str) else items


def _steps(items: Iterable[Any], *, agent: bool) -> list[Step]:
    """The steps of ``items``; an output joins the step that made its call."""
    steps: list[Step] = []
    owners: dict[str, Step] = {}
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            _observe(steps, owners, item)
        elif kind == "message" and item.get("role") in _SOURCES:
            steps.append({"source": _SOURCES[item["role"]], "message": message_text(item)})
        else:
            _act(steps, owners, item, kind)
    return steps if steps or not agent else [{"source": "agent"}]


def _act(steps: list[Step], owners: dict[str, Step], item: Mapping[str, Any], kind: str) -> None:
    step = _open_step(steps, kind)
    if kind == "message":
        step["message"] = message_text(dict(item))
    elif kind == "reasoning":
        step["reasoning_content"] = "\n".join(filter(None, [step.get("reasoning_content"), _thought(item)]))
    elif kind == "function_call":
        call_id = str(item.get("call_id", ""))
        step.setdefault("tool_calls", []).append(_call(call_id, item))
        owners[call_id] = step
    else:
        step.setdefault("extra", {}).setdefault("items", []).append(dict(item))


def _open_step(steps: list[Step], kind: str) -> Step:
    """The agent's step that an item belongs to: a new one once it has been answered, or has said this already."""
    last = steps[-1] if steps else None
    fresh = last is None or last["source"] != "agent" or "observation" in last
    if not fresh and last is not None and kind in ("message", "reasoning"):
        fresh = "tool_calls" in last or "message" in last
    if fresh or last is None:
        last = {"source": "agent"}
        steps.append(last)
    return last


def _call(call_id: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """A call; arguments that are no JSON object are kept as they were written."""
    written = str(item.get("arguments", ""))
    call: dict[str, Any] = {"tool_call_id": call_id, "function_name": str(item.get("name", "")), "arguments": {}}
    try:
        arguments = codec.loads(written.encode("utf-8", "surrogatepass"))
    except ValueError:
        arguments = None
    if isinstance(arguments, dict):
        return call | {"arguments": arguments}
    return call | {"extra": {"arguments": written}}


def _observe(steps: list[Step], owners: Mapping[str, Step], item: Mapping[str, Any]) -> None:
    call_id = str(item.get("call_id", ""))
    step = owners.get(call_id)
    result: dict[str, Any] = {"content": _said(item.get("output"))}
    if step is not None:
        result["source_call_id"] = call_id
    else:  # an output without a call
        step = _open_step(steps, "output")
        result["extra"] = {"call_id": call_id}
    step.setdefault("observation", {"results": []})["results"].append(result)


def _said(output: Any) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in output
    ):
        return "".join(part["text"] for part in output)
    return codec.dumps(output).decode("utf-8", "surrogatepass")


def _thought(item: Mapping[str, Any]) -> str:
    parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


def _numbered(steps: list[Step], row: Mapping[str, Any]) -> list[Step]:
    started = (row.get("gymkit") or {}).get("started_at")
    moment = datetime.fromtimestamp(started, UTC).isoformat().replace("+00:00", "Z") if started else None
    first = {"timestamp": moment} if moment else {}
    return [
        {"step_id": number, **(first if number == 1 else {}), "message": "", **step}
        for number, step in enumerate(steps, 1)
    ]


def _totals(usage: Any, steps: int) -> dict[str, Any]:
    totals: dict[str, Any] = {"total_steps": steps}
    names = {"total_prompt_tokens": "input_tokens", "total_completion_tokens": "output_tokens"}
    tokens = usage if isinstance(usage, dict) else {}
    totals |= {name: tokens[key] for name, key in names.items() if isinstance(tokens.get(key), int)}
    cached = (tokens.get("input_tokens_details") or {}).get("cached_tokens")
    return totals | ({"total_cached_tokens": cached} if isinstance(cached, int) else {})
