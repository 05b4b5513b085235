"""Between the two shapes: what User Sim has as chat messages goes over the wire as Responses items, and comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gymkit.usersim.runtime import Activation, Message

_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_KEPT = frozenset(
    {
        "include",
        "instructions",
        "max_tool_calls",
        "metadata",
        "parallel_tool_calls",
        "service_tier",
        "store",
        "temperature",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)


def request_of(activation: Activation, messages: Sequence[Message], base: Mapping[str, Any]) -> dict[str, Any]:
    """The Responses request for ``activation``; ``base`` are parameters underneath. Raises NotImplementedError.

    The assistant has the tools that the episode offers, and no others: nobody would run those of ``base``.
    """
    beneath = {name: value for name, value in base.items() if name != "tools" or activation.role != "assistant"}
    tools = {"tools": [_tool(tool) for tool in activation.tools]} if activation.tools else {}
    return {**beneath, **params_of(activation.parameters), **tools, "input": items_of(messages)}


def params_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Chat parameters as the Responses API's. Raises NotImplementedError for one that has no counterpart here."""
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        if value is None:
            continue
        if name in _RENAMED:
            found[_RENAMED[name]] = value
        elif name == "reasoning_effort":
            found["reasoning"] = {"effort": value}
        elif name == "response_format" and value.get("type") == "json_schema":
            found["text"] = {"format": {"type": "json_schema", **value["json_schema"]}}
        elif name in _KEPT:
            found[name] = value
        else:
            raise NotImplementedError(f"the parameter {name} has no counterpart in a Responses request")
    return found


def items_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Chat messages as the items of a Responses input."""
    return [item for message in messages for item in _items(message)]


def _items(message: Message) -> Iterator[dict[str, Any]]:
    role, content = message["role"], message.get("content") or ""
    if role == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": content}
        return
    calls = message.get("tool_calls") or ()
    if content or not calls:
        yield {"type": "message", "role": role, "content": content}
    for call in calls:
        function = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function["arguments"],
        }


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    return {
        "type": "function",
        "name": function["name"],
        "description": function.get("description") or "",
        "parameters": function.get("parameters") or {"type": "object", "properties": {}},
        "strict": bool(function.get("strict", False)),
    }


def message_of(response: Mapping[str, Any]) -> Message:
    """The chat message that a checked response amounts to; calls that it answers itself are its own affair."""
    answered = {item["call_id"] for item in response["output"] if item["type"] == "function_call_output"}
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    for item in response["output"]:
        match item["type"]:
            case "message":
                texts += _texts(item.get("content"))
            case "reasoning":
                reasoning += [*_texts(item.get("summary")), *_texts(item.get("content"))]
            case "function_call" if item["call_id"] not in answered:
                function = {"name": item["name"], "arguments": item["arguments"]}
                calls.append({"id": item["call_id"], "type": "function", "function": function})
    message: Message = {"role": "assistant", "content": "\n".join(texts)}
    if thought := "\n".join(reasoning):
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    return message


def usage_of(response: Mapping[str, Any]) -> tuple[int, int] | None:
    """Tokens read and written, where the response tells them."""
    usage = response.get("usage")
    return (usage["input_tokens"], usage["output_tokens"]) if usage else None


def _texts(content: Any) -> list[str]:
    """The texts of a content's parts; parts without one are left out."""
    if isinstance(content, str):
        return [content] if content else []
    parts = content if isinstance(content, list) else []
    return [str(text) for part in parts if (text := part.get("text") or part.get("refusal"))]
