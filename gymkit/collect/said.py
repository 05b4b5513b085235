"""What a captured model call says, whatever its dialect: the reply's words, its tool calls, its tokens.

Bodies come from anybody's server, so nothing here raises for one: what has another shape says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gymkit.wire import codec
from gymkit.wire.dialects.reasoning import reasoning_of
from gymkit.wire.responses import content_text, message_text


class Asked(msgspec.Struct, gc=False):
    """A request of which only the end is of interest."""

    input: str | list[msgspec.Raw] | None = None
    """Of the Responses API."""
    messages: list[msgspec.Raw] | None = None
    """Of the other dialects."""


class Item(msgspec.Struct, gc=False):
    """What is of interest in an output item of the Responses API."""

    type: str = "message"
    """Its kind."""
    content: Any = None
    """Of a message, or of a thought: its parts."""
    summary: Any = None
    """Of a thought."""
    call_id: Any = None
    """Of a call: what pairs it with its output."""
    name: Any = None
    """Of a call: the tool."""
    arguments: Any = None
    """Of a call."""


class Named(msgspec.Struct, gc=False):
    """A reply of which only the names are known."""

    id: Any = None
    """Its id."""
    model: Any = None
    """Who answered."""


class Replied(Named, gc=False):
    """What is of interest in a reply of any dialect: not the request's tools and instructions, which it repeats."""

    status: Any = None
    """What it says of itself."""
    incomplete_details: dict[str, Any] | None = None
    """Why it was cut."""
    output: list[Item] | None = None
    """Of the Responses API."""
    choices: Any = None
    """Of Chat Completions."""
    content: Any = None
    """Of Messages: its blocks."""
    stop_reason: Any = None
    """Of Messages: why it ended."""
    usage: dict[str, Any] | None = None
    """Its tokens."""


_REPLIED = msgspec.json.Decoder(Replied)
_NAMED = msgspec.json.Decoder(Named)
_ASKED = msgspec.json.Decoder(Asked)
_NOTHING: dict[str, Any] = {}


@dataclass(slots=True)
class Tokens:
    """Counts; None where the reply did not say."""

    read: int | None = None
    """Of the prompt, cached ones included."""
    written: int | None = None
    """Of the reply."""
    reasoning: int | None = None
    """Of the reply, reasoning."""
    total: int | None = None
    """Both."""
    cached: int | None = None
    """Of the prompt, from a cache."""
    cache_creation: int | None = None
    """Of the prompt, written to a cache."""


@dataclass(slots=True)
class Said:
    """A reply."""

    text: str = ""
    """The messages."""
    reasoning: str | None = None
    """The thoughts."""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    """What it asks for: ``call_id``, ``name``, ``arguments`` (text)."""
    finish_reason: str | None = None
    """Why it ended, in the dialect's word."""
    status: str | None = None
    """What the reply says of itself; only a Response does."""
    tokens: Tokens = field(default_factory=Tokens)
    """What it cost."""
    response_id: str | None = None
    """Its id."""
    model: str | None = None
    """Who answered."""


def said(dialect: str, body: Any) -> Said | None:
    """What the recorded ``body`` of a call in ``dialect`` says; None for one that is no JSON object."""
    reply = _read(body)
    if reply is None:
        return None
    try:
        told = _READERS.get(dialect, _responses)(reply) if isinstance(reply, Replied) else Said()
    except (AttributeError, KeyError, TypeError, IndexError):
        told = Said()
    told.response_id, told.model = reply.id, reply.model
    return told


def _read(body: Any) -> Named | None:
    """A reply as far as it is of interest here, or of another shape, its names."""
    for kind, decode in ((Replied, _REPLIED.decode), (Named, _NAMED.decode)):
        with suppress(msgspec.MsgspecError, RecursionError):
            return decode(body.data) if isinstance(body, codec.Raw) else msgspec.convert(body, kind)
    return None


def question(dialect: str, request: Any) -> str | None:
    """The last thing that a model was given by somebody else: a message, or a tool's output."""
    name = "input" if dialect == "responses" else "messages"
    if isinstance(request, codec.Raw):
        items = _beginning(request.data, name)
    else:
        items = request.get(name) if isinstance(request, dict) else None
    if isinstance(items, str):
        return items
    last = items[-1] if isinstance(items, list) and items else None
    if isinstance(last, msgspec.Raw):
        last = codec.loads(bytes(last))
    if not isinstance(last, dict):
        return None
    output = last.get("output")
    text = output if isinstance(output, str) else content_text(output or last.get("content"))
    return text or None


def _beginning(request: bytes, name: str) -> Any:
    """The field ``name`` of a request, its items unread: a conversation is long, and only its end is wanted."""
    try:
        return getattr(_ASKED.decode(request), name)
    except (msgspec.MsgspecError, RecursionError):
        return codec.loads(request).get(name)


def _responses(reply: Replied) -> Said:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for item in reply.output or ():
        if item.type == "message":
            texts.append(content_text(item.content))
        elif item.type == "function_call":
            calls.append({"call_id": item.call_id, "name": item.name, "arguments": item.arguments})
        elif item.type == "reasoning" and (thought := reasoning_of(item.content or item.summary)):
            thoughts.append(thought)
    usage, details = reply.usage or _NOTHING, reply.incomplete_details or _NOTHING
    read = usage.get("input_tokens_details") or _NOTHING
    written = usage.get("output_tokens_details") or _NOTHING
    return Said(
        "".join(texts),
        "\n".join(thoughts) or None,
        calls,
        _text(details.get("reason")),
        _text(reply.status),
        Tokens(
            _count(usage.get("input_tokens")),
            _count(usage.get("output_tokens")),
            _count(written.get("reasoning_tokens")),
            _count(usage.get("total_tokens")),
            _count(read.get("cached_tokens")),
            _count(read.get("cache_write_tokens")),
        ),
    )


def _chat(reply: Replied) -> Said:
    choice = reply.choices[0]
    message, usage = choice["message"], reply.usage or {}
    read, written = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    return Said(
        text=message_text(message) or message.get("refusal") or "",
        reasoning=message.get("reasoning_content") or message.get("reasoning") or None,
        tool_calls=[_call(each["function"], each.get("id")) for each in message.get("tool_calls") or ()],
        finish_reason=_text(choice.get("finish_reason")),
        tokens=Tokens(
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
            _count(written.get("reasoning_tokens")),
            _count(usage.get("total_tokens")),
            _count(read.get("cached_tokens")),
            _count(read.get("cache_write_tokens")),
        ),
    )


def _messages(reply: Replied) -> Said:
    blocks, usage = reply.content, reply.usage or {}
    cached, created = _count(usage.get("cache_read_input_tokens")), _count(usage.get("cache_creation_input_tokens"))
    read, written = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    if read is not None:  # this dialect counts what a cache read or wrote apart
        read += (cached or 0) + (created or 0)
    thoughts = [block.get("thinking") or "" for block in blocks if block.get("type") == "thinking"]
    return Said(
        text="".join(block.get("text") or "" for block in blocks if block.get("type") == "text"),
        reasoning="\n".join(thoughts) or None,
        tool_calls=[_used(block) for block in blocks if block.get("type") == "tool_use"],
        finish_reason=_text(reply.stop_reason),
        tokens=Tokens(
            read,
            written,
            _count((usage.get("output_tokens_details") or {}).get("thinking_tokens")),
            None if read is None or written is None else read + written,
            cached,
            created,
        ),
    )


def _call(function: Mapping[str, Any], call_id: Any) -> dict[str, Any]:
    return {"call_id": call_id, "name": function.get("name"), "arguments": function.get("arguments")}


def _used(block: Mapping[str, Any]) -> dict[str, Any]:
    return {"call_id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}


def _count(value: Any) -> int | None:
    return value if type(value) is int else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_READERS: dict[str, Callable[[Replied], Said]] = {"responses": _responses, "chat": _chat, "messages": _messages}
