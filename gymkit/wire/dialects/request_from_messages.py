"""A Messages request as a Responses request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymkit.wire import codec
from gymkit.wire.dialects.dropped import Converted, Dropped, Drops, copy_fields, drop_fields
from gymkit.wire.dialects.ids import mint
from gymkit.wire.dialects.message_blocks import part_from_block
from gymkit.wire.dialects.message_tools import choice_from_messages, output_from_messages, tools_from_messages
from gymkit.wire.dialects.reasoning import reasoning_item

_READ = (
    *("model", "system", "messages", "max_tokens", "temperature", "top_p", "tools", "tool_choice", "output_config"),
    "stream",
)
_THERE = "the Responses API"


def request_from_messages(body: Mapping[str, Any]) -> Converted:
    """Convert a request that passed ``messages.check_request``."""
    drops: Drops = []
    items: list[dict[str, Any]] = []
    for index, turn in enumerate(body["messages"]):
        _Turn(turn["role"], items, drops).add(turn["content"], f"messages[{index}].content")
    params: dict[str, Any] = {"input": items, **copy_fields(body, ("model", "temperature", "top_p"))}
    if system := _system(body.get("system"), drops):
        params["instructions"] = system
    if body.get("max_tokens") is not None:
        params["max_output_tokens"] = body["max_tokens"]
    if body.get("tools"):
        params["tools"] = tools_from_messages(body["tools"], drops)
    if body.get("tool_choice"):
        choice_from_messages(body["tool_choice"], params, drops)
    output_from_messages(body.get("output_config") or {}, params, drops)
    drop_fields(body, _READ, "", _THERE, drops)
    return Converted(params, drops)


def _system(system: str | Sequence[Mapping[str, Any]] | None, drops: Drops) -> str:
    if system is None or isinstance(system, str):
        return system or ""
    for index, block in enumerate(system):
        drop_fields(block, ("type", "text"), f"system[{index}].", _THERE, drops)
    return "\n".join(block["text"] for block in system)


class _Turn:
    """One message, taken apart: a Responses item holds either text or one call, output or thought."""

    def __init__(self, role: str, items: list[dict[str, Any]], drops: Drops) -> None:
        self._role = role
        self._items = items
        self._drops = drops
        self._parts: list[dict[str, Any]] = []

    def add(self, content: str | Sequence[Mapping[str, Any]], path: str) -> None:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for index, block in enumerate(blocks):
            self._add(block, f"{path}[{index}]")
        self._close()

    def _add(self, block: Mapping[str, Any], path: str) -> None:
        match block["type"]:
            case "image" | "document" if self._role == "assistant":
                self._drops.append(Dropped(path, f"a model's own message in {_THERE} holds text only"))
            case "text" | "image" | "document":
                self._parts.append(part_from_block(block, path, self._drops))
            case "tool_use":
                drop_fields(block, ("type", "id", "name", "input"), f"{path}.", _THERE, self._drops)
                self._put(call_item(block))
            case "tool_result":
                self._put(self._result(block, path))
            case "thinking" | "redacted_thinking":
                self._put(thought_item(block))

    def _put(self, item: dict[str, Any]) -> None:
        self._close()
        self._items.append(item)

    def _close(self) -> None:
        if self._parts:
            self._items.append(_message(self._role, self._parts))
            self._parts = []

    def _result(self, block: Mapping[str, Any], path: str) -> dict[str, Any]:
        extras = {name: value for name, value in block.items() if (name, value) != ("is_error", False)}
        drop_fields(extras, ("type", "tool_use_id", "content"), f"{path}.", _THERE, self._drops)
        return {
            "type": "function_call_output",
            "call_id": block["tool_use_id"],
            "output": self._output(block.get("content"), f"{path}.content"),
        }

    def _output(self, content: str | Sequence[Mapping[str, Any]] | None, path: str) -> str | list[dict[str, Any]]:
        if content is None or isinstance(content, str):
            return content or ""
        parts = [part_from_block(block, f"{path}[{index}]", self._drops) for index, block in enumerate(content)]
        if all(part["type"] == "input_text" for part in parts):
            return "\n".join(part["text"] for part in parts)
        return parts


def call_item(block: Mapping[str, Any]) -> dict[str, Any]:
    """A ``tool_use`` block as a function call."""
    return {
        "type": "function_call",
        "id": mint("fc"),
        "call_id": block["id"],
        "name": block["name"],
        "arguments": codec.dumps(block["input"]).decode("utf-8", "surrogatepass"),
        "status": "completed",
    }


def thought_item(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block of thinking as a reasoning item; what only the provider reads is its encrypted content."""
    if block["type"] == "redacted_thinking":
        return reasoning_item(None, block["data"])
    return reasoning_item(block["thinking"], block.get("signature") or None)


def _message(role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    if role != "assistant":
        return {"type": "message", "role": role, "content": parts}
    written = [{"type": "output_text", "text": part["text"], "annotations": []} for part in parts]
    return {"type": "message", "id": mint("msg"), "role": role, "status": "completed", "content": written}
