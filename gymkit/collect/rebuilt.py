"""The conversation of a harness that nobody can look into, put together again from its recorded model calls.

What the model wrote is on record with its tokens, and so is what the harness told it of its tools; that, in the order
of the calls, is the rollout's ``response.output``. A call that goes on from words that no recorded call wrote, and
that the task did not give, is a conversation with a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gymkit.servers.token_record import is_models, marks
from gymkit.wire import codec
from gymkit.wire.dialects.tokens import tokens_of

Item = dict[str, Any]
Record = Mapping[str, Any]
"""What ``servers.token_record`` made of a call."""


class Unresolved(Exception):
    """Says why tokens have no place."""


def rebuilt(records: Sequence[Record], task: Any, *, loose: bool) -> list[Item]:
    """The items of the calls ``records``, tokens on the last of each. Raises Unresolved.

    ``task`` is the task's input, whose words need no record; ``loose`` lets a conversation have holes.
    """
    known, told, items = set(_given(task)), set[str](), list[Item]()
    for number, record in enumerate(records, 1):
        output = record.get("output_items")
        if not output or not (tokens := tokens_of(record)):
            raise Unresolved(f"call {number} of {len(records)} came without token ids")
        follows = record.get("follows")
        if follows and not loose and not known & set(follows):
            raise Unresolved(f"call {number} of {len(records)} goes on from words that no recorded call wrote")
        for item in record.get("tool_outputs") or ():
            if item.get("call_id") in known and item["call_id"] not in told:
                told.add(item["call_id"])
                items.append(dict(item))
        items += [dict(item) for item in output]
        items[-1].update(tokens)
        known.update(marks(output))
    return items


def _given(task: Any) -> Iterator[str]:
    """What the model is said to have said in the task itself, turn by turn."""
    turn: list[Record] = []
    for item in [*(task if isinstance(task, list) else ()), {"role": "user"}]:
        if isinstance(item, Mapping) and is_models(item):
            turn.append(item)
        elif turn:
            yield from marks(turn)
            turn = []


def put_in_place(result: dict[str, Any], items: list[Item]) -> None:
    """Make ``items`` the output of ``result``; what is known of the calls that gymkit ran goes over to them."""
    response = result["response"]
    before, response["output"] = response.get("output") or [], items
    own = result.get("gymkit")
    if isinstance(own, dict) and isinstance(own.get("calls"), list):
        own["calls"] = list(_moved(own["calls"], before, items))
        own["steps"] = sum("generation_token_ids" in item for item in items)


def _moved(calls: Iterable[Record], before: Sequence[Item], items: Sequence[Item]) -> Iterator[Item]:
    """The entries of calls with their outputs' new places: by the id, or else the next one that asks for the same."""
    places = {item["call_id"]: index for index, item in enumerate(items) if item.get("type") == "function_call_output"}
    old = {item["call_id"]: item for item in before if item.get("type") == "function_call"}
    step, asked = 1, list[tuple[int, Item]]()
    for item in items:
        if item.get("type") == "function_call" and item["call_id"] in places:
            asked.append((step, item))
        step += "generation_token_ids" in item
    for call in calls:
        wanted = old.get(before[call["item"]].get("call_id"))
        found = next((each for each in asked if wanted is not None and _same(each[1], wanted)), None)
        if found is not None:
            asked.remove(found)
            yield {**call, "item": places[found[1]["call_id"]], "step": found[0]}


def _same(one: Item, other: Item) -> bool:
    """Whether a model's call is the environment's; harnesses put the server's name before the tool's."""
    if one["call_id"] == other["call_id"]:
        return True
    return str(one["name"]).endswith(other["name"]) and _arguments(one) == _arguments(other)


def _arguments(item: Item) -> Any:
    try:
        return codec.loads(str(item["arguments"]).encode())
    except ValueError:
        return item["arguments"]
