"""Between the two shapes: what User Sim has as chat messages goes over the wire as Responses items, and comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gymkit.usersim.runtime import Activation, Message

_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_KEPT = frozenset({"temperature", "top_p", "tool_choice", "parallel_tool_calls"})


def request_of(activation: Activation, messages: Sequence[Message], base: Mapping[str, Any]) -> dict[str, Any]:
    """The Responses request for ``activation``; ``base`` are parameters underneath. Raises NotImplementedError."""
    tools = {"tools": [_tool(tool) for tool in activation.tools]} if activation.tools else {}
    return {**base, **params_of(activation.parameters), **tools, "input": items_of(messages)}


def params_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Chat parameters as the Responses API's. Raises NotImplementedError for one that has no counterpart here."""
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        if name in _RENAMED:
            found[_RENAMED[name]] = value
        elif name == "reasoning_effort":
            found["reasoning"] = {"effort": value}
        elif name == "response_format" and value.get("type") == "json_schema":
            found["text"] = {"format": {"type": "json_schema", "strict": True, **value["json_schema"]}}
        elif name in _KEPT:
            found[name] = value
        elif value is not None:
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
                texts.append(_text(item.get("content")))
            case "reasoning":
                reasoning.append(_text(item.get("content")) or _text(item.get("summary")))
            case "function_call" if item["call_id"] not in answered:
                function = {"name": item["name"], "arguments": item["arguments"]}
                calls.append({"id": item["call_id"], "type": "function", "function": function})
    message: Message = {"role": "assistant", "content": "".join(texts)}
    if thought := "\n".join(text for text in reasoning if text):
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    return message


def usage_of(response: Mapping[str, Any]) -> tuple[int, int] | None:
    """Tokens read and written, where the response tells them."""
    usage = response.get("usage")
    return (usage["input_tokens"], usage["output_tokens"]) if usage else None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)
