"""Reasoning: a Responses item, a field of a chat message, ``<think>`` in its text, or a thinking block."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gymkit.wire.dialects.ids import mint

_THINK = re.compile(r"\s*<think>(.*?)(?:</think>|\Z)", re.DOTALL)  # a reply cut short may never close it
_CLOSED = re.compile(r"(.*?)</think>", re.DOTALL)


def reasoning_item(text: str | None, encrypted: str | None = None) -> dict[str, Any]:
    """A reasoning item. Its text is a summary, because NeMo Gym's readers look nowhere else."""
    summary = [] if text is None else [{"type": "summary_text", "text": text}]
    item: dict[str, Any] = {"type": "reasoning", "id": mint("rs"), "summary": summary}
    if encrypted is not None:
        item["encrypted_content"] = encrypted
    return item


def reasoning_text(item: Mapping[str, Any]) -> str | None:
    """What a reasoning item says: the reasoning where it is there, or else its summaries, one a line; None if empty."""
    return reasoning_of(item.get("content") or item.get("summary"))


def reasoning_of(parts: Any) -> str | None:
    """The same of its parts alone."""
    return "\n".join(part["text"] for part in parts) if parts else None


def in_tags(reasoning: str) -> str:
    """Reasoning as a model without a reasoning parser wrote it."""
    return f"<think>{reasoning}</think>"


def split_tags(text: str) -> tuple[str | None, str]:
    """Part a reply into its reasoning and the rest.

    Only what stands first counts: a ``<think>`` further on is text. Where the chat template opens the tag, the reply
    holds the end alone, so everything before a ``</think>`` that was not opened is reasoning too.
    """
    if match := _THINK.match(text):
        return match[1], text[match.end() :]
    closed = _CLOSED.match(text) if "<think>" not in text else None
    return (closed[1], text[closed.end() :]) if closed else (None, text)
