"""A Response as a Messages reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymkit.wire.dialects.dropped import Converted, Dropped, Drops, drop_fields
from gymkit.wire.dialects.message_blocks import block_from_part
from gymkit.wire.dialects.request_to_messages import thinking_blocks, tool_use
from gymkit.wire.dialects.usage import usage_to_messages

_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
_THERE = "Messages"


def reply_to_messages(response: Mapping[str, Any]) -> Converted:
    """Convert a Response that passed ``responses.check_response``. The reply has the Response's id."""
    drops: Drops = []
    blocks: list[dict[str, Any]] = []
    for index, item in enumerate(response["output"]):
        blocks += _blocks(item, f"output[{index}]", drops)
    reply = {
        "id": response["id"],
        "type": "message",
        "role": "assistant",
        "model": response["model"],
        "content": blocks,
        "stop_reason": _stop_reason(response, blocks, drops),
        "stop_sequence": None,
        "usage": usage_to_messages(response.get("usage"), drops),
    }
    return Converted(reply, drops)


def _stop_reason(response: Mapping[str, Any], blocks: list[dict[str, Any]], drops: Drops) -> str:
    details = response.get("incomplete_details")
    if details and details.get("reason") in _REASONS:
        return _REASONS[details["reason"]]
    if details:
        drops.append(Dropped("incomplete_details.reason", f"{_THERE} has no reason like {details.get('reason')!r}"))
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def _blocks(item: Mapping[str, Any], path: str, drops: Drops) -> list[dict[str, Any]]:
    match item["type"]:
        case "reasoning":
            return thinking_blocks(item)
        case "message" if item["role"] == "assistant":
            return _text(item["content"], f"{path}.content", drops)
        case "function_call":
            return [tool_use(item, path, drops)]
        case kind:
            drops.append(Dropped(path, f"a Messages reply has no block like {kind}"))
            return []


def _text(content: str | list[Mapping[str, Any]], path: str, drops: Drops) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    made = []
    for index, part in enumerate(content):
        extras = {name: part.get(name) or None for name in ("annotations", "logprobs")}
        drop_fields(extras, (), f"{path}[{index}].", _THERE, drops)
        block = block_from_part(part, f"{path}[{index}]", drops)
        if block and block["type"] == "text":
            made.append(block)
        elif block:
            drops.append(Dropped(f"{path}[{index}]", f"a Messages reply has no block like {part['type']}"))
    return made
