"""Server-sent events as bytes."""

from __future__ import annotations

from typing import Any

from gymkit.wire import codec

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment: it says that the server is there, and clients skip it."""


def data(payload: Any) -> bytes:
    """An event without a name."""
    return b"data: " + codec.dumps(payload) + b"\n\n"


def event(name: str, payload: Any) -> bytes:
    """An event called ``name``."""
    return b"event: " + name.encode() + b"\n" + data(payload)
