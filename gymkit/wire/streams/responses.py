"""The Responses API's stream: the response begun, each item done, the response completed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gymkit.wire.streams.sse import event


def events(response: Mapping[str, Any]) -> Iterator[bytes]:
    """The events of a whole ``response``."""
    begun = {**response, "status": "in_progress", "output": [], "incomplete_details": None}
    begun.pop("usage", None)
    yield _event("response.created", 0, response=begun)
    for index, item in enumerate(response["output"]):
        yield _event("response.output_item.done", index + 1, output_index=index, item=item)
    yield _event("response.completed", len(response["output"]) + 1, response=response)


def failure(message: str, kind: str) -> bytes:
    """The event that ends a stream without a response."""
    failed = {
        "id": "resp_failed",
        "object": "response",
        "created_at": 0,
        "model": "",
        "status": "failed",
        "error": {"code": kind, "message": message},
        "output": [],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    return _event("response.failed", 0, response=failed)


def _event(kind: str, number: int, **fields: Any) -> bytes:
    return event(kind, {"type": kind, "sequence_number": number, **fields})
