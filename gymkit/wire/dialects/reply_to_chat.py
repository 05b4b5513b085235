"""A Response as a chat completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymkit.wire.dialects.chat_tools import flat_name
from gymkit.wire.dialects.dropped import Converted, Dropped, Drops, drop_fields
from gymkit.wire.dialects.reasoning import reasoning_text
from gymkit.wire.dialects.tokens import last_tokens
from gymkit.wire.dialects.usage import usage_to_chat
from gymkit.wire.responses import Response

_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
_OWN = frozenset(Response.__annotations__) - {"service_tier"}
_WRITTEN = ("output_text", "input_text", "refusal")
_THERE = "Chat Completions"


def reply_to_chat(response: Mapping[str, Any]) -> Converted:
    """Convert a Response that passed ``responses.check_response``; unknown fields ride along."""
    drops: Drops = []
    message, logprobs = _message(response["output"], drops)
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": _finish_reason(response, message, drops),
        "logprobs": {"content": logprobs, "refusal": None} if logprobs else None,
    }
    completion = {
        "id": response["id"],
        "object": "chat.completion",
        "created": int(response["created_at"]),
        "model": response["model"],
        "choices": [choice],
    }
    if (usage := usage_to_chat(response.get("usage"), drops)) is not None:
        completion["usage"] = usage
    rest = {name: value for name, value in response.items() if name not in _OWN and value is not None}
    return Converted({**rest, **completion}, drops)


def _finish_reason(response: Mapping[str, Any], message: Mapping[str, Any], drops: Drops) -> str:
    details = response.get("incomplete_details")
    if details and details.get("reason") in _REASONS:
        return _REASONS[details["reason"]]
    if details:
        drops.append(Dropped("incomplete_details.reason", f"{_THERE} has no reason like {details.get('reason')!r}"))
    return "tool_calls" if message.get("tool_calls") else "stop"


def _message(output: list[Mapping[str, Any]], drops: Drops) -> tuple[dict[str, Any], list[Any]]:
    thoughts: list[str] = []
    parts: list[Mapping[str, Any]] = []
    calls: list[dict[str, Any]] = []
    logprobs: list[Any] = []
    annotations: list[dict[str, Any]] = []
    for index, item in enumerate(output):
        path = f"output[{index}]"
        match item["type"]:
            case "reasoning":
                thoughts += [text] if (text := reasoning_text(item)) is not None else []
                drop_fields({"encrypted_content": item.get("encrypted_content")}, (), f"{path}.", _THERE, drops)
            case "message" if item["role"] == "assistant":
                parts += _parts(item["content"], f"{path}.content", drops)
            case "function_call":
                function = {"name": flat_name(item.get("namespace"), item["name"]), "arguments": item["arguments"]}
                calls.append({"id": item["call_id"], "type": "function", "function": function})
            case "custom_tool_call" if "call_id" in item:
                custom = {"name": item.get("name", ""), "input": item.get("input", "")}
                calls.append({"id": item["call_id"], "type": "custom", "custom": custom})
            case kind:
                drops.append(Dropped(path, f"a chat completion has no item like {kind}"))
    for part in parts:
        logprobs += part.get("logprobs") or ()
        annotations += _citations(part, drops)
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    texts = [part["text"] for part in parts if "text" in part]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None}
    message["refusal"] = "".join(refusals) if refusals else None
    optional = {"reasoning_content": "\n".join(thoughts), "tool_calls": calls, "annotations": annotations}
    message |= {name: value for name, value in optional.items() if value}
    return {**message, **last_tokens(output)}, logprobs


def _parts(content: str | list[Mapping[str, Any]], path: str, drops: Drops) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "output_text", "text": content}]
    strange = [index for index, part in enumerate(content) if part["type"] not in _WRITTEN]
    drops += [Dropped(f"{path}[{index}]", "a chat completion holds text only") for index in strange]
    return [part for part in content if part["type"] in _WRITTEN]


def _citations(part: Mapping[str, Any], drops: Drops) -> list[dict[str, Any]]:
    made = []
    for annotation in part.get("annotations") or ():
        kind = annotation.get("type")
        if kind == "url_citation":
            citation = {name: value for name, value in annotation.items() if name != "type"}
            made.append({"type": "url_citation", "url_citation": citation})
        else:
            drops.append(Dropped("output[].content[].annotations[]", f"{_THERE} has no annotation like {kind}"))
    return made
