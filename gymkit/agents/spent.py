"""The tokens that a program spent, read off the model server's replies in whichever dialect they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gymkit.errors import WireError
from gymkit.wire import codec
from gymkit.wire.dialects.usage import usage_from_chat, usage_from_messages
from gymkit.wire.usage import Usage, sum_usage

NOTHING: Usage = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": None},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": None},
    "total_tokens": 0,
}


class Spent:
    """Counts the calls of one rollout."""

    def __init__(self) -> None:
        self._new: list[dict[str, Any] | None] = []
        self._calls = 0

    def add(self, path: str, body: bytes) -> None:
        """Take in the reply to a call of ``path``: JSON, or a stream of events."""
        self._calls += 1
        self._new.append(_usage(path, body))

    def take(self) -> Usage | None:
        """What was spent since the last time. None where a call did not say, or where no call was ever made here."""
        new, self._new = self._new, []
        if not self._calls or None in new:
            return None
        try:
            return sum_usage([usage for usage in new if usage is not None]) or NOTHING
        except WireError:
            return None


def _usage(path: str, body: bytes) -> dict[str, Any] | None:
    told: dict[str, Any] = {}
    for each in _objects(body):
        for holder in (each, each.get("response"), each.get("message")):
            if isinstance(holder, Mapping) and isinstance(holder.get("usage"), Mapping):
                told |= {name: value for name, value in holder["usage"].items() if value is not None}
    if not told:
        return None
    if path.endswith("/responses"):
        return told
    if path.endswith("/chat/completions"):
        return usage_from_chat(told, [])
    spent = usage_from_messages(told, [])
    return spent if spent and spent["total_tokens"] else None  # Messages wants numbers: zeros are no knowledge


def _objects(body: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects in a body, or in the events of a stream that may hold a count."""
    lines = [body] if body.startswith(b"{") else [line[5:] for line in body.split(b"\n") if line.startswith(b"data:")]
    for line in lines:
        if b'"usage"' in line:
            try:
                value = codec.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value
