"""The messages of a conversation with a simulated user, as they lie in a row: Chat Completions' shape."""

from __future__ import annotations

from typing import Any

import msgspec


class Function(msgspec.Struct, gc=False):
    """What a tool call asks for."""

    name: Any = None
    """The function."""
    arguments: Any = None
    """The arguments as they were written."""


class Call(msgspec.Struct, gc=False):
    """A tool call of a message."""

    id: Any = None
    """What pairs it with its output."""
    function: Function | None = None
    """What it asks for."""


class Message(msgspec.Struct, gc=False):
    """A message of the conversation."""

    role: Any = None
    """Who speaks: user, assistant or tool."""
    content: Any = None
    """The text."""
    reasoning_content: Any = None
    """What the assistant thought, where its model tells it."""
    tool_calls: list[Call] | None = None
    """What the assistant asks for."""
    tool_call_id: Any = None
    """Of a tool's output: the call it answers."""


class Talked(msgspec.Struct, gc=False):
    """A simulation with its conversation."""

    conversation_messages: list[Message] | None = None
    """What was said, in order."""
