"""A Responses request as a Messages request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymkit.wire.dialects.chat_tools import flat_name
from gymkit.wire.dialects.dropped import Converted, Dropped, Drops, copy_fields, drop_fields
from gymkit.wire.dialects.message_blocks import arguments_object, blocks_from
from gymkit.wire.dialects.message_tools import choice_to_messages, output_to_messages, tools_to_messages
from gymkit.wire.dialects.reasoning import reasoning_text

MAX_TOKENS = 4096
"""Bound on the reply where the request sets none: Messages wants one."""

_READ = (
    *("input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "text"),
    *("reasoning", "stream", "stream_options", "model", "temperature", "top_p"),
)
_NOTHING: Mapping[str, Any] = {"background": False, "truncation": "disabled", "store": False, "include": []}
"""Values that say what Messages does anyway."""

_THERE = "Messages"


def request_to_messages(params: Mapping[str, Any]) -> Converted:
    """Convert a request that passed ``responses.check_request``."""
    drops: Drops = []
    conversation = _Conversation(drops)
    content = params["input"]
    for index, item in enumerate([{"role": "user", "content": content}] if isinstance(content, str) else content):
        conversation.add(item, f"input[{index}]")
    system = [params["instructions"]] if params.get("instructions") else []
    body: dict[str, Any] = {
        "max_tokens": params.get("max_output_tokens") or MAX_TOKENS,
        "messages": conversation.messages,
        **copy_fields(params, ("model", "temperature", "top_p")),
    }
    if system := [*system, *conversation.system]:
        body["system"] = "\n".join(system)
    if tools := tools_to_messages(params.get("tools") or (), "tools", drops):
        body["tools"] = tools
        if choice := choice_to_messages(params, drops):
            body["tool_choice"] = choice
    if config := output_to_messages(params, drops):
        body["output_config"] = config
    rest = {name: value for name, value in params.items() if name not in _NOTHING or value != _NOTHING[name]}
    drop_fields(rest, _READ, "", _THERE, drops)
    return Converted(body, drops)


class _Conversation:
    """Messages' turns, filled item by item; neighbours of one role share a turn."""

    def __init__(self, drops: Drops) -> None:
        self.messages: list[dict[str, Any]] = []
        self.system: list[str] = []
        self._drops = drops

    def add(self, item: Mapping[str, Any], path: str) -> None:
        match item.get("type") or "message":
            case "message":
                self._message(item, path)
            case "reasoning":
                self._put("assistant", thinking_blocks(item))
            case "function_call":
                self._put("assistant", [tool_use(item, path, self._drops)])
            case "function_call_output":
                self._put("user", [self._result(item, path)])
            case kind:
                self._drops.append(Dropped(path, f"{_THERE} has no block like {kind}"))

    def _message(self, item: Mapping[str, Any], path: str) -> None:
        drop_fields({"phase": item.get("phase")}, (), f"{path}.", _THERE, self._drops)
        blocks = blocks_from(item["content"], f"{path}.content", self._drops)
        if item["role"] in ("user", "assistant"):
            self._put(item["role"], blocks)
        elif self.messages or any(block["type"] != "text" for block in blocks):
            self._put("system", blocks)
        else:
            self.system += [block["text"] for block in blocks]

    def _result(self, item: Mapping[str, Any], path: str) -> dict[str, Any]:
        output = item["output"]
        content = output if isinstance(output, str) else blocks_from(output, f"{path}.output", self._drops)
        return {"type": "tool_result", "tool_use_id": item["call_id"], "content": content}

    def _put(self, role: str, blocks: list[dict[str, Any]]) -> None:
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})


def thinking_blocks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A reasoning item as a block; none for one that says nothing."""
    text, encrypted = reasoning_text(item), item.get("encrypted_content")
    if text is None:
        return [{"type": "redacted_thinking", "data": encrypted}] if encrypted is not None else []
    return [{"type": "thinking", "thinking": text, "signature": encrypted or ""}]


def tool_use(item: Mapping[str, Any], path: str, drops: Drops) -> dict[str, Any]:
    """A function call as a block."""
    name = flat_name(item.get("namespace"), item["name"])
    arguments = arguments_object(item["arguments"], path, drops)
    return {"type": "tool_use", "id": item["call_id"], "name": name, "input": arguments}
