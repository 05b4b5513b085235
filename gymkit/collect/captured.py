"""A captured model call, as the row tells it: briefly in ``ng_model_call_capture``, whole in ``ng_trajectory``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gymkit.collect.said import Said, outline, said
from gymkit.wire import codec
from gymkit.wire.trajectory import CallEntry

_ELSEWHERE = ("request", "response", "request_raw", "response_raw", "latency_ms", "tokens", "token_capture")
"""What the brief form leaves out of a record."""


class Call:
    """One call: what the capture holds of it (``record``), and what the reply says (``said``)."""

    __slots__ = ("id", "index", "model", "record", "response_id", "said", "server", "succeeded")

    def __init__(self, index: int, record: Mapping[str, Any]) -> None:
        status, response = record.get("status_code"), record.get("response")
        if isinstance(response, codec.Raw):
            response = outline(response)
        self.index = index
        """Order of recording, from 0."""
        self.record = record
        self.id: str | None = record.get("model_call_id")
        """Id that the model server gave it."""
        self.server: str | None = (record.get("model_ref") or {}).get("name")
        """Name of the model server."""
        reply = response if status is not None and status < 400 and isinstance(response, dict) else None
        self.succeeded = reply is not None
        """Whether the client got a reply. A failed call's body says nothing of a model."""
        self.said = said(record.get("dialect") or "", reply) if reply is not None else Said()
        self.response_id: str | None = reply.get("id") if reply is not None else None
        """Id of the response."""
        self.model: str | None = reply.get("model") if reply is not None else None
        """Name of the model that answered."""

    def reference(self) -> dict[str, Any]:
        """What names it, every way there is."""
        named = {
            "model_call_id": self.id,
            "model_ref": self.record.get("model_ref"),
            "response_id": self.response_id,
        }
        return {key: value for key, value in named.items() if value is not None}

    def entry(self) -> CallEntry:
        """It in brief."""
        told, tokens = self.said, self.said.tokens
        entry: dict[str, Any] = {
            **self.record,
            "response_id": self.response_id,
            "call_index": self.index,
            "model": self.model,
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
                "response_id": self.response_id,
                "model_ref": record.get("model_ref"),
                "model": self.model,
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
    entries = [call.entry() for call in calls]
    sums = {
        name: _added(entry.get(source) for entry in entries)
        for name, source in {
            "tokens_in": "tokens_in",
            "tokens_out": "tokens_out",
            "tokens_reasoning": "tokens_reasoning",
            "tokens_total": "tokens_total",
            "cached_tokens": "cached_tokens",
            "latency_total_ms": "latency_total_ms",
        }.items()
    }
    made = {"rollout_id": rollout, "metrics": {**sums, "num_calls": len(entries)}, "calls": entries}
    return {**made, "gaps": list(gaps)} if gaps else made


def _added(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
