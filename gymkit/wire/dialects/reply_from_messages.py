"""A Messages reply as a Response."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gymkit.wire.dialects.dropped import Converted, Dropped, Drops, copy_fields, drop_fields
from gymkit.wire.dialects.ids import mint
from gymkit.wire.dialects.request_from_messages import call_item, thought_item
from gymkit.wire.dialects.usage import usage_from_messages

_READ = ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage")
_ENDED = ("end_turn", "tool_use", None)
_CUT = {
    "max_tokens": "max_output_tokens",
    "model_context_window_exceeded": "max_output_tokens",
    "refusal": "content_filter",
}
_THERE = "the Responses API"


def reply_from_messages(reply: Mapping[str, Any], params: Mapping[str, Any]) -> Converted:
    """Convert a reply that passed ``messages.check_reply``; ``params`` is the Responses request that it answers."""
    drops: Drops = []
    output: list[dict[str, Any]] = []
    for index, block in enumerate(reply["content"]):
        output.append(_item(block, f"content[{index}]", drops))
    status, details = _ending(reply.get("stop_reason"), drops)
    drop_fields({"stop_sequence": reply.get("stop_sequence")}, (), "", _THERE, drops)
    asked = copy_fields(params, ("tools", "tool_choice", "parallel_tool_calls", "metadata"))
    response: dict[str, Any] = {
        "id": reply["id"],
        "object": "response",
        "created_at": time.time(),
        "model": reply["model"],
        "status": status,
        "incomplete_details": details,
        "output": output,
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        **asked,
    }
    if reply.get("usage") and (usage := usage_from_messages(reply["usage"], drops)) is not None:
        response["usage"] = usage
    rest = {name: value for name, value in reply.items() if name not in _READ and value is not None}
    return Converted({**rest, **response}, drops)


def _ending(reason: str | None, drops: Drops) -> tuple[str, dict[str, Any] | None]:
    if reason in _ENDED or reason == "stop_sequence":
        return "completed", None
    if reason not in _CUT:
        drops.append(Dropped("stop_reason", f"{_THERE} has no reason like {reason!r}"))
        return "incomplete", {"reason": None}
    return "incomplete", {"reason": _CUT[reason]}


def _item(block: Mapping[str, Any], path: str, drops: Drops) -> dict[str, Any]:
    match block["type"]:
        case "tool_use":
            return call_item(block)
        case "thinking" | "redacted_thinking":
            return thought_item(block)
        case _:
            if block.get("citations"):
                drops.append(Dropped(f"{path}.citations", f"{_THERE} has no annotation like it"))
            text = {"type": "output_text", "text": block["text"], "annotations": []}
            return {"type": "message", "id": mint("msg"), "role": "assistant", "status": "completed", "content": [text]}
