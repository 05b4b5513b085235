"""The evidence of a rollout, put on its row: what the model servers recorded, and what the agent says it saw.

Nothing is guessed: what is not known is a gap with a code. A row is never lost to its evidence.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from gymkit.collect.captured import Call, summary
from gymkit.collect.joined import join
from gymkit.collect.said import question
from gymkit.collect.tokens import Tokens
from gymkit.errors import WireError
from gymkit.servers.capture import Capture, Captured
from gymkit.wire.observations import check_observations
from gymkit.wire.responses import content_text
from gymkit.wire.tasks import capture_key_of
from gymkit.wire.trajectory import CAPTURE, OBSERVATIONS, PERF, SCHEMA_VERSION, TRAJECTORY, check_trajectory

log = logging.getLogger("gymkit")

Row = dict[str, Any]

NOT_MERGED: Final = frozenset({"agent_request_failed", "agent_run_error", "environment_server_failed"})
"""Failure classes whose rows get no evidence: there is no reply that it could be about."""


class Evidence:
    """What a collector does about evidence; ``capture`` is where the model servers put their records.

    ``expected`` says that every rollout calls a model: one without a record then says so. ``tokens`` puts token ids on
    the rows.
    """

    def __init__(self, capture: Capture, *, expected: bool = True, tokens: Tokens | None = None) -> None:
        self._capture = capture
        self._expected = expected
        self.tokens = tokens or Tokens()

    def begin(self, planned: Mapping[str, Any]) -> str | None:
        """The rollout ``planned`` is about to be sent: what an earlier one of the same name left is forgotten.

        Returns the name of its records; None for one that cannot have any.
        """
        if (key := _key_of(planned)) is None:
            return None
        try:
            self._capture.clear(key)
        except OSError as error:
            log.warning("rollout %s: older records of its model calls cannot be removed: %s", key, error)
        return key

    async def add(self, key: str, planned: Mapping[str, Any], result: Row, seconds: float) -> None:
        """Put the records under ``key`` of the rollout ``planned`` on its ``result``, which took ``seconds``."""
        try:
            captured = await self._capture.collect(key)
            gaps = self._gaps(captured)
        except OSError as error:
            captured = Captured([], True)
            gaps = [{"code": "model_call_capture_unreadable", "detail": str(error)}]
        if result.get("_ng_failure_class") in NOT_MERGED or result.get("_ng_no_persist"):
            return
        try:
            calls = [Call(index, record) for index, record in enumerate(captured.calls)]
            self.tokens.attach(result, calls, incomplete=captured.incomplete)
            if self._capture.observed:
                merge(planned, result, key, calls, seconds, gaps)
        except Exception as error:  # the reward is worth more than the evidence for it
            log.exception("rollout %s: its evidence could not be merged", key, exc_info=error)
            gap = {"code": "trajectory_projection_failed", "detail": f"{type(error).__name__}: {error}"}
            result[TRAJECTORY] = {**_frame(planned, key), "gaps": [gap]}

    def _gaps(self, captured: Captured) -> list[Row]:
        gaps = []
        if not captured.calls and self._expected:
            gaps.append({"code": "model_call_capture_no_records"})
        if captured.incomplete:
            gaps.append({"code": "model_call_capture_incomplete", "detail": "at least one call is not on record"})
        return gaps


def merge(
    planned: Mapping[str, Any], result: Row, key: str, calls: list[Call], seconds: float, gaps: list[Row]
) -> None:
    """Lay ``ng_model_call_capture``, ``ng_trajectory`` and ``ng_perf`` on ``result``, where there is anything to tell.

    ``gaps`` are what is known to be missing of ``calls``.
    """
    if not (calls or gaps or OBSERVATIONS in result or TRAJECTORY in result):
        return
    if calls or gaps:
        result[CAPTURE] = summary(key, calls, gaps)
    trajectory = _trajectory(planned, result, key, calls, gaps)
    result[TRAJECTORY] = trajectory
    if trajectory["invocations"]:
        result[PERF] = _perf(trajectory, seconds)


def _frame(planned: Mapping[str, Any], key: str) -> Row:
    return {
        "schema_version": SCHEMA_VERSION,
        "task_id": _task_of(planned),
        "rollout_id": key,
        **{name: [] for name in ("invocations", "turns", "model_calls", "tool_calls", "gaps")},
    }


def _trajectory(planned: Mapping[str, Any], result: Row, key: str, calls: list[Call], capture_gaps: list[Row]) -> Row:
    gaps = list(capture_gaps)
    producer = _producer(result.get(TRAJECTORY), key, gaps)
    seen = _observed(result.get(OBSERVATIONS), gaps)
    made = _frame(planned, key)
    invocations = (producer or {}).get("invocations") or _of_kind(seen, "agent_invocation")
    tools = (producer or {}).get("tool_calls") or _of_kind(seen, "tool_call")
    joined = join(invocations, calls)
    gaps += [*(seen.get("gaps") or ()), *((producer or {}).get("gaps") or ()), *joined.gaps]
    made["invocations"] = [{**each, "model_calls": joined.references(each["invocation_id"])} for each in invocations]
    made["model_calls"] = [call.whole() for call in calls] or list((producer or {}).get("model_calls") or ())
    outputs = _outputs(invocations) if tools else {}
    made["tool_calls"] = [_with_output(tool, outputs) for tool in tools]
    if producer is not None:
        made["turns"] = producer.get("turns") or []
    else:
        for invocation in invocations:
            name = invocation["invocation_id"]
            made["turns"] += _turns(name, made["task_id"], key, joined.owned[name])
    gaps += _absent(made)
    made["gaps"] = _distinct(gaps)
    return made


def _producer(content: Any, key: str, gaps: list[Row]) -> Row | None:
    if content is None:
        return None
    try:
        told = check_trajectory(content).rollout_id
    except WireError as error:
        gaps.append({"code": "producer_trajectory_invalid", "detail": "; ".join(error.problems)})
        return None
    if told != key:
        detail = f"it is of the rollout {told!r:.80}, and this one is {key!r}"
        gaps.append({"code": "producer_trajectory_identity_mismatch", "detail": detail})
        return None
    return dict(content)


def _observed(content: Any, gaps: list[Row]) -> Row:
    if content is None:
        return {}
    try:
        check_observations(content)
    except WireError as error:
        gaps.append({"code": "agent_observations_invalid", "detail": "; ".join(error.problems)})
        return {}
    return dict(content)


def _of_kind(bundle: Row, kind: str) -> list[Row]:
    return [record for record in bundle.get("records") or () if record.get("kind") == kind]


def _turns(invocation: str, task: str, key: str, calls: list[Call]) -> list[Row]:
    """A turn for each of ``calls`` that has a reply."""
    turns: list[Row] = []
    asked = 0
    for call in calls:
        if not call.succeeded:
            continue
        told = call.said
        asked += len(told.tool_calls)
        turns.append(
            {
                "invocation_id": invocation,
                "task_id": task,
                "rollout_id": key,
                "turn_no": len(turns) + 1,
                "timestamp": call.record.get("started_at"),
                "question": question(call.record.get("dialect") or "", call.record.get("request")),
                "answer": told.text or None,
                "reasoning_content": told.reasoning,
                "step_count": asked,
                "model_calls": [call.reference()],
            }
        )
    return turns


def _outputs(invocations: list[Row]) -> dict[tuple[str, Any], Any]:
    """What came back from tools, by invocation and call id, out of the conversations; the first of two counts."""
    found: dict[tuple[str, Any], Any] = {}
    for invocation in invocations:
        for item in invocation.get("conversation") or ():
            if item.get("type") == "function_call_output":
                found.setdefault((invocation["invocation_id"], item.get("call_id")), item.get("output"))
    return found


def _with_output(tool: Row, outputs: Mapping[tuple[str, Any], Any]) -> Row:
    """The observed tool call with what came back."""
    name = tool["invocation_id"], tool["tool_call_id"]
    if name not in outputs:
        return dict(tool)
    return {**tool, "output": content_text(outputs[name])}


def _absent(made: Row) -> list[Row]:
    """The gaps that show in the finished trajectory."""
    gaps: list[Row] = []
    if not made["model_calls"]:
        gaps.append({"code": "model_calls_unavailable"})
    if not made["turns"]:
        gaps.append({"code": "turns_unavailable"})
    for invocation in made["invocations"]:
        if not invocation.get("conversation"):
            gaps.append({"code": "conversation_unavailable", "invocation_id": invocation["invocation_id"]})
    return gaps


def _distinct(gaps: list[Row]) -> list[Row]:
    return list({(gap["code"], gap.get("invocation_id"), gap.get("detail")): gap for gap in gaps}.values())


def _perf(trajectory: Row, seconds: float) -> Row:
    calls = {each["model_call_id"]: each["token_stats"] for each in trajectory["model_calls"]}
    named = [
        [ref["model_call_id"] for ref in each["model_calls"] if ref.get("model_call_id") in calls]
        for each in trajectory["invocations"]
    ]
    turns = 0
    for invocation, ids in zip(trajectory["invocations"], named, strict=True):
        own = sum(turn["invocation_id"] == invocation["invocation_id"] for turn in trajectory["turns"])
        turns += own or len(ids) or 1
    owned = [calls[name] for ids in named for name in ids]
    perf: Row = {
        "num_turns": turns,
        "num_tool_calls": len(trajectory["tool_calls"]),
        "token_observability_coverage": min(1.0, len(owned) / turns),
    }
    for name, source in _SUMS.items():
        known = [stats[source] for stats in owned if stats.get(source) is not None]
        if known:
            perf[name] = sum(known)
    return {**perf, "total_latency_ms": seconds * 1000}


_SUMS: Final = {
    "prompt_tokens": "prompt_tokens",
    "cached_prompt_tokens": "cached_tokens",
    "completion_tokens": "completion_tokens",
    "reasoning_tokens": "reasoning_tokens",
}


def _key_of(planned: Mapping[str, Any]) -> str | None:
    try:
        return capture_key_of(planned)
    except WireError:
        return None  # a name that no path can carry: nothing was recorded under it


def _task_of(planned: Mapping[str, Any]) -> str:
    for name in ("task_id", "problem_id", "instance_id", "_ng_task_index"):
        value = planned.get(name)
        value = value.get("task_id") if isinstance(value, Mapping) else value
        if value is not None:
            return str(value)
    return ""
