"""Chat Completions' stream: the role, reasoning, text, refusal and calls of each choice, then how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gymkit.wire.streams.sse import data, event

_TEXTS = ("reasoning_content", "reasoning", "content", "refusal")
_AT_ONCE = frozenset({"role", "tool_calls", *_TEXTS})


def events(completion: Mapping[str, Any], *, usage: bool) -> Iterator[bytes]:
    """The chunks of a whole ``completion``; ``usage``: with a last one that counts the tokens."""
    frame = {name: value for name, value in completion.items() if name not in ("choices", "usage")}
    frame["object"] = "chat.completion.chunk"
    for choice in completion["choices"]:
        index = choice.get("index", 0)
        for delta, logprobs in _deltas(choice):
            yield data({**frame, "choices": [{"index": index, "delta": delta, "finish_reason": None, **logprobs}]})
        end = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield data({**frame, "choices": [end]})
    if usage:
        yield data({**frame, "choices": [], "usage": completion.get("usage")})
    yield b"data: [DONE]\n\n"


def failure(message: str, kind: str) -> bytes:
    """The event that ends a stream without a completion."""
    return event("error", {"error": {"message": message, "type": kind, "code": kind}})


def _deltas(choice: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    message = choice["message"]
    extras = {name: value for name, value in message.items() if name not in _AT_ONCE and value is not None}
    yield {"role": "assistant", **extras}, {}
    logprobs = {"logprobs": choice["logprobs"]} if choice.get("logprobs") else {}
    for name in _TEXTS:
        if message.get(name):
            yield {name: message[name]}, logprobs if name in ("content", "refusal") else {}
    if calls := message.get("tool_calls"):
        yield {"tool_calls": [{"index": index, **call} for index, call in enumerate(calls)]}, {}
