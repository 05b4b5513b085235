"""Saved runs of verifiers (0.4), ``traces.jsonl``, read without verifiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gymkit.collect.imported import Attempt, Foreign
from gymkit.collect.lines import read_whole
from gymkit.errors import StoreError
from gymkit.wire.conversations import Call, Message

FILE: Final = "traces.jsonl"
"""The file in the folder of a run."""

_LIMITS: Final = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens")
_NOT_THE_TASKS: Final = frozenset(
    {"prompt", "system_prompt", "skills", "network_allow", "network_block", "artifacts", "artifact_max_bytes"}
    | {"timeout", "resources", "idx", "image", "workdir", "agent_user"}
)


def read_traces(path: Path) -> Foreign:
    """The run in the file ``path``, or in its folder.

    A line is an episode. Of one with several agents, the first trace is the rollout. Raises StoreError for a broken
    line and for a file that holds something else.
    """
    file = path / FILE if path.is_dir() else path
    first = next(read_whole(file), None)
    if first is None or not isinstance(first.row.get("traces"), list):
        raise StoreError(f"{file} holds no episodes of verifiers: each line needs traces")
    head = (first.row["traces"] or [{}])[0]
    return Foreign(
        program="verifiers",
        environment=str((first.row.get("env") or {}).get("id") or (first.row.get("task") or {}).get("type", "env")),
        agent=str(((head.get("agent") or {}).get("config") or {}).get("model") or "agent"),
        file=file,
        planned=(),
        attempts=_attempts(file),
    )


def _attempts(path: Path) -> Iterator[Attempt]:
    seen: Counter[str] = Counter()
    for line in read_whole(path):
        task = line.row.get("task") or {}
        data = task.get("data") or {}
        names = (data.get("id"), data.get("name"), data.get("idx"), task.get("key"))
        name = str(next((each for each in names if each is not None), line.number))
        yield _attempt(name, seen[name], data, line.row)
        seen[name] += 1


def _attempt(name: str, rollout: int, data: Mapping[str, Any], episode: Mapping[str, Any]) -> Attempt:
    trace: Mapping[str, Any] = next(iter(episode.get("traces") or ()), {})
    errors = [*(episode.get("errors") or ()), *(trace.get("errors") or ())]
    rewards = {key: reward for key, reward in (trace.get("rewards") or {}).items() if reward is not None}
    failed = errors and not (episode.get("ok") and rewards)
    model = ((trace.get("agent") or {}).get("config") or {}).get("model")
    return Attempt(
        task_id=name,
        rollout=rollout,
        messages=tuple(_message(node["message"]) for node in _branch(trace.get("nodes") or [])),
        reward=sum(each["score"] * each.get("weight", 1.0) for each in rewards.values()) if rewards else None,
        components={key: float(each["score"]) for key, each in rewards.items()},
        error=str(errors[-1].get("message", "")) if failed else None,
        error_kind=str(errors[-1].get("type", "")) or None if failed else None,
        termination=_termination(trace),
        model=str(model or ""),
        usage=_usage(trace.get("calls") or ()),
        seconds=_seconds(trace.get("timing") or {}),
        started_at=(trace.get("timing") or {}).get("start"),
        fields={key: value for key, value in data.items() if key not in _NOT_THE_TASKS},
    )


def _branch(nodes: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The path to the last message that the model wrote; earlier branches are drafts, or agents of their own."""
    written = [place for place, node in enumerate(nodes) if node.get("sampled")]
    place: int | None = written[-1] if written else len(nodes) - 1 if nodes else None
    path = []
    while place is not None:
        path.append(nodes[place])
        place = nodes[place].get("parent")
    return path[::-1]


def _message(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    calls = message.get("tool_calls") or ()
    return Message(
        role=str(message.get("role", "user")),
        text="".join(str(part["text"]) if part.get("type") == "text" else f"[{part.get('type')}]" for part in parts),
        reasoning=str(message.get("reasoning_content") or ""),
        calls=tuple(Call(str(call["id"]), str(call["name"]), str(call["arguments"])) for call in calls),
        call_id=str(message.get("tool_call_id") or ""),
    )


def _termination(trace: Mapping[str, Any]) -> str:
    if trace.get("is_timeout"):
        return "deadline"
    return "max_steps" if trace.get("stop_condition") in _LIMITS else "message"


def _usage(calls: Any) -> dict[str, int] | None:
    every = [call["usage"] for call in calls if call.get("usage")]
    if not every:
        return None
    read = sum(each.get("prompt_tokens", 0) + (each.get("cached_input_tokens") or 0) for each in every)
    return {
        "input": read,
        "output": sum(each.get("completion_tokens", 0) for each in every),
        "cached": sum(each.get("cached_input_tokens") or 0 for each in every),
        "reasoning": sum(each.get("reasoning_tokens") or 0 for each in every),
    }


def _seconds(timing: Mapping[str, Any]) -> float | None:
    start = timing.get("start")
    ends = [span["end"] for span in timing.values() if isinstance(span, Mapping) and span.get("end")]
    return max(ends) - start if ends and start else None
