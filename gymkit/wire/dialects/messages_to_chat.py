"""A Messages request as a Chat Completions request, by way of Responses, and what only those two share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gymkit.wire.dialects.dropped import Dropped
from gymkit.wire.dialects.request_from_messages import request_from_messages
from gymkit.wire.dialects.request_to_chat import request_to_chat

_SHARED = {"stop_sequences": "stop"}


class Chat(NamedTuple):
    """A Messages request on its way to a chat upstream."""

    params: dict[str, Any]
    """As a Responses request."""
    chat: dict[str, Any]
    """As a Chat Completions request."""
    dropped: list[Dropped]
    """What the latter has no place for."""


def messages_to_chat(body: Mapping[str, Any], *, think_tags: bool = False) -> Chat:
    """Convert a request that passed ``messages.check_request``; ``think_tags`` as in ``request_to_chat``."""
    params, dropped = request_from_messages(body)
    chat, more = request_to_chat(params, think_tags=think_tags)
    shared = {there: body[here] for here, there in _SHARED.items() if body.get(here)}
    return Chat(params, {**chat, **shared}, [drop for drop in [*dropped, *more] if drop.path not in _SHARED])
