"""A captured model call, as the row tells it: briefly in ``ng_model_call_capture``, whole in ``ng_trajectory``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymkit.collect.said import Said, said
from gymkit.wire.trajectory import CallEntry

_ELSEWHERE = ("request", "response", "request_raw", "response_raw", "latency_ms", "tokens", "token_capture")
"""What the brief form leaves out of a record."""


class Call:
    """One call: what the capture holds of it (``record``), and what the reply says (``said``)."""

    __slots__ = ("id", "index", "model_ref", "record", "said", "succeeded")

    def __init__(self, index: int, record: Mapping[str, Any]) -> None:
        status = record.get("status_code")
        answered = status is not None and status < 400
        told = said(record.get("dialect") or "", record.get("response")) if answered else None
        self.index = index
        """Order of recording, from 0."""
        self.record = record
        self.id: str | None = record.get("model_call_id")
        """Id that the model server gave it."""
        self.model_ref: Mapping[str, Any] = record.get("model_ref") or {}
        """The model server."""
        self.succeeded = told is not None
        """Whether the client got a reply. A failed call's body says nothing of a model."""
        self.said = told or Said()

    def reference(self) -> dict[str, Any]:
        """What names it, every way there is."""
        named: dict[str, Any] = {}
        if self.id is not None:
            named["model_call_id"] = self.id
        if self.model_ref:
            named["model_ref"] = self.model_ref
        if self.said.response_id is not None:
            named["response_id"] = self.said.response_id
        return named

    def entry(self) -> CallEntry:
        """It in brief."""
        told, tokens = self.said, self.said.tokens
        entry: dict[str, Any] = {
            **self.record,
            "response_id": told.response_id,
            "call_index": self.index,
            "model": told.model,
            "response_status": told.status,
            "finish_reason": told.finish_reason,
            "tokens_in": tokens.read,
            "tokens_out": tokens.written,
            "tokens_reasoning": tokens.reasoning,
            "tokens_total": tokens.total,
            "tool_calls": told.tool_calls,
            "reasoning_content": told.reasoning,
            "cache_hit": None if tokens.cached is None else tokens.cached > 0,
            "cached_tokens": tokens.cached,
            "cache_creation_tokens": tokens.cache_creation,
            "latency_total_ms": self.record.get("latency_ms"),
        }
        for name in _ELSEWHERE:
            entry.pop(name, None)
        return entry  # type: ignore[return-value]

    def whole(self) -> dict[str, Any]:
        """It with its bodies; a body that is no JSON is its text."""
        told, record = self.said, self.record
        return {
            "model_call_id": self.id,
            "started_at": record.get("started_at"),
            "completed_at": record.get("completed_at"),
            "duration_ms": record.get("latency_ms"),
            "request": record.get("request_raw", record.get("request")),
            "response": record.get("response_raw", record.get("response")),
            "response_metadata": {
                "response_id": told.response_id,
                "model_ref": record.get("model_ref"),
                "model": told.model,
                "dialect": record.get("dialect"),
                "status_code": record.get("status_code"),
                "response_status": told.status,
                "finish_reason": told.finish_reason,
                "upstream_attempted": record.get("upstream_attempted"),
                "response_source": record.get("response_source"),
                "upstream_status_code": record.get("upstream_status_code"),
                "local_response_reason": record.get("local_response_reason"),
                "error_category": record.get("error_category"),
                "latency_ttft_ms": record.get("latency_ttft_ms"),
            },
            "token_stats": {
                "prompt_tokens": told.tokens.read,
                "completion_tokens": told.tokens.written,
                "reasoning_tokens": told.tokens.reasoning,
                "total_tokens": told.tokens.total,
                "cached_tokens": told.tokens.cached,
            },
        }


def summary(rollout: str, calls: Sequence[Call], gaps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """``ng_model_call_capture``: sums, each null where no call reported it, and the calls in brief."""
    made = {"rollout_id": rollout, "metrics": _metrics(calls), "calls": [call.entry() for call in calls]}
    return {**made, "gaps": list(gaps)} if gaps else made


def _metrics(calls: Sequence[Call]) -> dict[str, Any]:
    tokens = [call.said.tokens for call in calls]
    return {
        "tokens_in": _added([each.read for each in tokens]),
        "tokens_out": _added([each.written for each in tokens]),
        "tokens_reasoning": _added([each.reasoning for each in tokens]),
        "tokens_total": _added([each.total for each in tokens]),
        "cached_tokens": _added([each.cached for each in tokens]),
        "latency_total_ms": _added([call.record.get("latency_ms") for call in calls]),
        "num_calls": len(calls),
    }


def _added(values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
