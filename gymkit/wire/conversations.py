"""Chat messages of other programs as items of the Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gymkit.wire import codec

Item = dict[str, Any]


class Call(NamedTuple):
    """A tool call of an assistant message."""

    call_id: str
    """Pairs it with its output."""
    name: str
    """The function."""
    arguments: Any
    """JSON in a text, or the value itself."""


class Message(NamedTuple):
    """A chat message."""

    role: str
    """``system``, ``developer``, ``user``, ``assistant`` or ``tool``."""
    text: str
    """What it says."""
    reasoning: str = ""
    """Of an assistant: what it thought."""
    calls: tuple[Call, ...] = ()
    """Of an assistant: the tools it calls."""
    call_id: str = ""
    """Of a tool: the call that it answers."""


def items_of(messages: Iterable[Message]) -> tuple[list[Item], list[Item]]:
    """The items of a conversation: what the task asked (up to the first assistant message), and what came of it."""
    asked: list[Item] = []
    came: list[Item] = []
    for number, message in enumerate(messages):
        if message.role == "assistant":
            came += _said(message, number)
        elif message.role == "tool":
            came.append({"type": "function_call_output", "call_id": message.call_id, "output": message.text})
        else:
            (came if came else asked).append({"type": "message", "role": message.role, "content": message.text})
    return asked, came


def _said(message: Message, number: int) -> Iterable[Item]:
    if message.reasoning:
        summary = [{"type": "summary_text", "text": message.reasoning}]
        yield {"type": "reasoning", "id": f"rs_{number}", "summary": summary}
    if message.text or not message.calls:
        part = {"type": "output_text", "text": message.text, "annotations": []}
        yield {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    for place, call in enumerate(message.calls):
        yield {
            "type": "function_call",
            "id": f"fc_{number}_{place}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": _arguments(call.arguments),
        }


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else codec.dumps(value).decode("utf-8", "surrogatepass")


def response_of(items: list[Item], *, model: str, usage: Mapping[str, int] | None, incomplete: bool) -> dict[str, Any]:
    """A whole response around ``items``; ``usage`` needs input and output tokens."""
    response: dict[str, Any] = {
        "id": "imported",
        "object": "response",
        "created_at": 0.0,
        "model": model,
        "output": items,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    if incomplete:
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    if usage is not None:
        response["usage"] = _usage(usage)
    return response


def _usage(tokens: Mapping[str, int]) -> dict[str, Any]:
    read, written = tokens.get("input", 0), tokens.get("output", 0)
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": tokens.get("total", read + written),
        "input_tokens_details": {"cached_tokens": tokens.get("cached", 0)},
        "output_tokens_details": {"reasoning_tokens": tokens.get("reasoning", 0)},
    }
