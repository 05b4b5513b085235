"""The three token fields of an item or a chat message: what the model read, what it wrote, and how likely that was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from gymkit.wire.dialects.dropped import Dropped, Drops

TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
"""All three or none; on the last item of a model's reply."""

CARRIED = (*TOKEN_FIELDS, "routed_experts")
"""What moves along with them."""

MODEL_ITEMS = ("reasoning", "message", "function_call", "custom_tool_call")
"""Types of items that a model itself writes."""


def tokens_of(source: Mapping[str, Any]) -> dict[str, Any]:
    """The token fields of an item or a message; empty when it does not have all three."""
    if any(source.get(name) is None for name in TOKEN_FIELDS):
        return {}
    return {name: source[name] for name in CARRIED if source.get(name) is not None}


def last_tokens(items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The token fields of the last of ``items`` that has any."""
    return next((tokens for item in reversed(list(items)) if (tokens := tokens_of(item))), {})


def attach_tokens(items: list[dict[str, Any]], tokens: Mapping[str, Any], path: str, drops: Drops) -> None:
    """Put ``tokens`` on the last item; a reply that came to nothing has none to carry them."""
    if items:
        items[-1].update(tokens)
    elif tokens:
        drops.append(Dropped(f"{path}.generation_token_ids", "the message is empty: there is no item to carry them"))


def without_tokens(item: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The item as a service reads it that does not know the token fields; the item itself when it has none."""
    if not any(name in item for name in CARRIED):
        return item
    return {name: value for name, value in item.items() if name not in CARRIED}
