"""Token ids that a model server recorded for an opaque harness, put back on the items of its row.

A recorded reply is found in the response by what it says: its call ids, its text. All of the model's items have to be
found, each in a reply whose tokens are on record; otherwise nothing is put on, and the row is masked with the reason,
because a trainer would learn from words that the policy did not write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gymkit.collect.captured import Call
from gymkit.wire.dialects.tokens import MODEL_ITEMS, tokens_of
from gymkit.wire.responses import message_text

Item = dict[str, Any]

KIND = "token_capture_incomplete"
"""The failure kind of a row whose tokens cannot be rebuilt."""


def attach(result: dict[str, Any], calls: Sequence[Call], *, incomplete: bool) -> None:
    """Put the recorded tokens of ``calls`` on the items of ``result``, or mask it. Rows without such calls stay.

    ``incomplete`` says that the record is known to have a hole.
    """
    wanted = [call for call in calls if call.record.get("token_capture")]
    if not wanted:
        return
    response = result.get("response")
    output = response.get("output") if isinstance(response, Mapping) else None
    try:
        if incomplete:
            raise _Unresolved("a model call is not on record")
        placed = _placed([call for call in wanted if call.succeeded], output if isinstance(output, list) else [])
    except _Unresolved as error:
        result["_ng_token_capture"] = {"calls": len(wanted), "attached": 0, "reason": str(error)}
        if not result.get("mask_sample"):
            result |= {"mask_sample": True, "failure_kind": KIND, "failure_reason": f"token ids: {error}"}
        return
    for item, tokens in placed:
        item.update(tokens)
    result["_ng_token_capture"] = {"calls": len(wanted), "attached": len(placed)}


class _Unresolved(Exception):
    """Says why tokens have no place."""


def _placed(calls: Sequence[Call], output: list[Item]) -> list[tuple[Item, dict[str, Any]]]:
    """The last item of each reply, with the tokens that belong there. Raises _Unresolved."""
    items = [(index, item) for index, item in enumerate(output) if item.get("type", "message") in MODEL_ITEMS]
    placed, at = [], 0
    for number, call in enumerate(calls, 1):
        tokens = tokens_of(call.record.get("tokens") or {})
        if not tokens:
            raise _Unresolved(f"call {number} of {len(calls)} came without token ids")
        found = None
        for mark in _marks(call):
            found, at = _next(mark, items, at, number, len(calls))
        if found is not None:
            placed.append((found, tokens))
    rest = [index for index, item in items[at:] if item.get("type", "message") != "reasoning"]
    if rest:
        raise _Unresolved(f"item {rest[0]} of the response is in no recorded reply")
    return placed


def _marks(call: Call) -> Iterator[tuple[str, str]]:
    """What to look for: the text of the message first, then the calls."""
    if call.said.text:
        yield "message", call.said.text
    for asked in call.said.tool_calls:
        yield "function_call", str(asked["call_id"])


def _next(mark: tuple[str, str], items: list[tuple[int, Item]], at: int, number: int, total: int) -> tuple[Item, int]:
    """The next item, which has to be the marked one; reasoning before it belongs to the same reply."""
    while at < len(items) and items[at][1].get("type") == "reasoning":
        at += 1
    if at == len(items):
        raise _Unresolved(f"what call {number} of {total} said is not in the response")
    index, item = items[at]
    if _mark_of(item) != mark:
        raise _Unresolved(f"item {index} of the response is not what call {number} of {total} said")
    return item, at + 1


def _mark_of(item: Item) -> tuple[str, str]:
    if item.get("type", "message") == "message":
        return "message", message_text(item)
    return str(item.get("type")), str(item.get("call_id"))
