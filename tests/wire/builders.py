"""Small valid objects to start a test from."""

from __future__ import annotations

from typing import Any


def call(call_id: str = "c1", name: Any = "add", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def output(call_id: str = "c1", text: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text, **more}


def answer(text: str = "done", **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
    return {**message, **more}


def usage(tokens: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2 * tokens,
        **more,
    }


def response(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "r1",
        "created_at": 0.0,
        "model": "agent",
        "object": "response",
        "output": list(items),
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        **more,
    }


def task(**more: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": [{"role": "user", "content": "add 1"}]}, **more}
