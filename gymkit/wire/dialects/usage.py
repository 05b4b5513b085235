"""Tokens spent: the Responses API's usage from and to the other dialects'.

Responses and Chat count tokens read from a cache and written to it within the input; Messages counts them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

from gymkit.wire.dialects.dropped import Dropped, Drops, drop_fields

Usage = Mapping[str, Any]

_CHAT = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details")
_MESSAGES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def usage_from_chat(usage: Usage, drops: Drops) -> dict[str, Any] | None:
    """Chat's usage as the Responses API's; None where it does not hold both counts."""
    if not _counts(usage, "prompt_tokens", "completion_tokens"):
        drops.append(Dropped("usage", "it does not say both prompt_tokens and completion_tokens"))
        return None
    read, written = usage["prompt_tokens"], usage["completion_tokens"]
    prompt, completion = _object(usage, "prompt_tokens_details"), _object(usage, "completion_tokens_details")
    drop_fields(usage, _CHAT, "usage.", "the Responses API", drops)
    _drop_counts(prompt, ("cached_tokens", "cache_write_tokens"), "usage.prompt_tokens_details.", drops)
    _drop_counts(completion, ("reasoning_tokens",), "usage.completion_tokens_details.", drops)
    return _usage(
        read,
        written,
        _count(prompt.get("cached_tokens")),
        _count(prompt.get("cache_write_tokens")),
        _count(completion.get("reasoning_tokens")),
        _count(usage.get("total_tokens")),
    )


def usage_to_chat(usage: Usage | None, drops: Drops) -> dict[str, Any] | None:
    """The Responses API's usage as Chat's; None where there is none, or what should be a count is none."""
    if not usage or not _is_whole(usage, drops):
        return None
    cached, cache_write, reasoning = _details(usage)
    prompt = {"cached_tokens": cached, "cache_write_tokens": cache_write}
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
        "prompt_tokens_details": {name: count for name, count in prompt.items() if count is not None},
        "completion_tokens_details": {} if reasoning is None else {"reasoning_tokens": reasoning},
    }


def usage_from_messages(usage: Usage, drops: Drops) -> dict[str, Any] | None:
    """Messages' usage as the Responses API's; None where it does not hold both counts."""
    if not _counts(usage, "input_tokens", "output_tokens"):
        drops.append(Dropped("usage", "it does not say both input_tokens and output_tokens"))
        return None
    cached = _count(usage.get("cache_read_input_tokens"))
    cache_write = _count(usage.get("cache_creation_input_tokens"))
    details = _object(usage, "output_tokens_details")
    drop_fields(usage, (*_MESSAGES, "output_tokens_details"), "usage.", "the Responses API", drops)
    read = usage["input_tokens"] + (cached or 0) + (cache_write or 0)
    return _usage(read, usage["output_tokens"], cached, cache_write, _count(details.get("thinking_tokens")), None)


def usage_to_messages(usage: Usage | None, drops: Drops) -> dict[str, Any]:
    """The Responses API's usage as Messages', which wants numbers: zeros, reported, where nothing is known."""
    if not usage or not _is_whole(usage, drops):
        drops.append(Dropped("usage", "it is unknown, and Messages wants numbers: they are zero"))
        return {"input_tokens": 0, "output_tokens": 0}
    cached, cache_write, reasoning = _details(usage)
    made = {
        "input_tokens": max(0, usage["input_tokens"] - (cached or 0) - (cache_write or 0)),
        "output_tokens": usage["output_tokens"],
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": cache_write,
        "output_tokens_details": None if reasoning is None else {"thinking_tokens": reasoning},
    }
    return {name: value for name, value in made.items() if value is not None}


def _usage(
    read: int, written: int, cached: int | None, cache_write: int | None, reasoning: int | None, total: int | None
) -> dict[str, Any]:
    details = {"cached_tokens": cached}
    if cache_write is not None:
        details["cache_write_tokens"] = cache_write
    return {
        "input_tokens": read,
        "input_tokens_details": details,
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": read + written if total is None else total,
    }


def _details(usage: Usage) -> tuple[int | None, int | None, int | None]:
    read, written = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return read.get("cached_tokens"), read.get("cache_write_tokens"), written.get("reasoning_tokens")


def _count(value: Any) -> int | None:
    return value if type(value) is int else None


def _object(usage: Usage, name: str) -> Usage:
    value = usage.get(name)
    return value if isinstance(value, Mapping) else {}


def _is_whole(usage: Usage, drops: Drops) -> bool:
    counts = (usage.get("input_tokens"), usage.get("output_tokens"), usage.get("total_tokens"))
    if all(type(count) is int for count in counts) and all(type(each) in (int, NoneType) for each in _details(usage)):
        return True
    drops.append(Dropped("usage", "one of its counts is no whole number"))
    return False


def _counts(usage: Usage, *names: str) -> bool:
    return all(type(usage.get(name)) is int for name in names)


def _drop_counts(details: Usage, known: tuple[str, ...], where: str, drops: Drops) -> None:
    """Report counts that have no place; a count of zero says nothing."""
    drop_fields({name: count or None for name, count in details.items()}, known, where, "the Responses API", drops)
