"""A Chat Completions request as a Responses request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymkit.wire.dialects.chat_parts import from_chat
from gymkit.wire.dialects.chat_tools import choice_from_chat, format_from_chat, tools_from_chat
from gymkit.wire.dialects.dropped import Converted, Dropped, Drops, copy_fields, drop_fields
from gymkit.wire.dialects.ids import mint
from gymkit.wire.dialects.reasoning import reasoning_item
from gymkit.wire.dialects.request_to_chat import SAME
from gymkit.wire.dialects.tokens import attach_tokens, tokens_of

_READ = (
    *("messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens"),
    *("reasoning_effort", "verbosity", "response_format", "logprobs", "stream", "stream_options"),
    "return_token_ids",
)
_NOTHING: Mapping[str, Any] = {
    "n": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "modalities": ["text"],
    "logit_bias": {},
    "stop": [],
}
"""Values that say what the Responses API does anyway."""

_THERE = "the Responses API"


def request_from_chat(chat: Mapping[str, Any]) -> Converted:
    """Convert a request that passed ``chat.check_request``."""
    drops: Drops = []
    items: list[dict[str, Any]] = []
    for index, message in enumerate(chat["messages"]):
        items += _items(message, f"messages[{index}]", drops)
    params: dict[str, Any] = {"input": items, **copy_fields(chat, SAME)}
    bound = chat.get("max_completion_tokens") or chat.get("max_tokens")
    if bound is not None:
        params["max_output_tokens"] = bound
    if chat.get("tools"):
        params["tools"] = tools_from_chat(chat["tools"], "tools", drops)
    params |= copy_fields(chat, ("parallel_tool_calls",))
    if chat.get("tool_choice") is not None and (choice := choice_from_chat(chat["tool_choice"], drops)) is not None:
        params["tool_choice"] = choice
    _settings(chat, params)
    rest = {name: value for name, value in chat.items() if name not in _NOTHING or value != _NOTHING[name]}
    drop_fields(rest, {*SAME, *_READ}, "", _THERE, drops)
    return Converted(params, drops)


def _settings(chat: Mapping[str, Any], params: dict[str, Any]) -> None:
    if chat.get("reasoning_effort") is not None:
        params["reasoning"] = {"effort": chat["reasoning_effort"]}
    text = copy_fields(chat, ("verbosity",))
    if chat.get("response_format") is not None:
        text["format"] = format_from_chat(chat["response_format"])
    if text:
        params["text"] = text
    if chat.get("logprobs"):
        params["include"] = ["message.output_text.logprobs"]


def _items(message: Mapping[str, Any], path: str, drops: Drops) -> list[dict[str, Any]]:
    match message["role"]:
        case "assistant":
            return assistant_items(message, path, drops) or [{"type": "message", "role": "assistant", "content": ""}]
        case "tool":
            output = from_chat(message["content"], f"{path}.content", drops, videos=False)
            return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}]
        case role:
            drop_fields({"name": message.get("name")}, (), f"{path}.", _THERE, drops)
            content = from_chat(message["content"], f"{path}.content", drops)
            return [{"type": "message", "role": role, "content": content}]


def assistant_items(message: Mapping[str, Any], path: str, drops: Drops) -> list[dict[str, Any]]:
    """The items of an assistant's message: reasoning, text, calls; of a history or of a reply."""
    items = []
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    if thoughts:
        items.append(reasoning_item(thoughts))
    if content := _written(message, path, drops):
        items.append(
            {"type": "message", "id": mint("msg"), "role": "assistant", "status": "completed", "content": content}
        )
    items += [_call(call) for call in message.get("tool_calls") or ()]
    attach_tokens(items, tokens_of(message), path, drops)
    for name in ("name", "audio", "function_call"):
        drop_fields({name: message.get(name)}, (), f"{path}.", _THERE, drops)
    return items


def _written(message: Mapping[str, Any], path: str, drops: Drops) -> list[dict[str, Any]]:
    content = message.get("content") or []
    made = []
    for index, part in enumerate([{"type": "text", "text": content}] if isinstance(content, str) else content):
        if part["type"] in ("text", "refusal"):
            made.append(_written_part(part))
        else:
            drops.append(Dropped(f"{path}.content[{index}]", f"a model's own message in {_THERE} holds text only"))
    if message.get("refusal"):
        made.append({"type": "refusal", "refusal": message["refusal"]})
    return made


def _written_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "refusal":
        return {"type": "refusal", "refusal": part["refusal"]}
    return {"type": "output_text", "text": part["text"], "annotations": []}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    if "custom" in call:
        custom = call["custom"]
        return {
            "type": "custom_tool_call",
            "id": mint("ctc"),
            "call_id": call["id"],
            "name": custom["name"],
            "input": custom["input"],
        }
    function = call["function"]
    return {
        "type": "function_call",
        "id": mint("fc"),
        "call_id": call["id"],
        "name": function["name"],
        "arguments": function["arguments"],
        "status": "completed",
    }
