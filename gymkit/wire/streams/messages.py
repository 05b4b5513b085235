"""Messages' stream: the message begun, each block started, filled and stopped, then how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gymkit.wire import codec
from gymkit.wire.streams.sse import event


def events(message: Mapping[str, Any]) -> Iterator[bytes]:
    """The events of a whole ``message``."""
    usage = {**(message.get("usage") or {}), "output_tokens": 0}
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield event("message_start", {"type": "message_start", "message": begun})
    for index, block in enumerate(message["content"]):
        shell, deltas = _taken_apart(block)
        yield event("content_block_start", {"type": "content_block_start", "index": index, "content_block": shell})
        for delta in deltas:
            yield event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
        yield event("content_block_stop", {"type": "content_block_stop", "index": index})
    ended = {"stop_reason": message.get("stop_reason"), "stop_sequence": message.get("stop_sequence")}
    written = {"output_tokens": (message.get("usage") or {}).get("output_tokens")}
    yield event("message_delta", {"type": "message_delta", "delta": ended, "usage": written})
    yield event("message_stop", {"type": "message_stop"})


def failure(message: str, kind: str) -> bytes:
    """The event that ends a stream without a message."""
    return event("error", {"type": "error", "error": {"type": kind, "message": message}})


def _taken_apart(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it starts, and what then fills it."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
            if block.get("signature"):
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        case "tool_use":
            arguments = codec.dumps(block["input"]).decode("utf-8", "surrogatepass")
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": arguments}]
        case _:
            return dict(block), []
