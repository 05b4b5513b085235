"""A rollout's items in order, each with what is known of its origin; what the two item frames are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from gymkit.frames.cells import integer
from gymkit.frames.lines import Place
from gymkit.frames.messages import Message
from gymkit.frames.records import Key
from gymkit.frames.rows import Content, ExecutedCall, Item, Transcript

CALL: Final = "function_call"
OUTPUT: Final = "function_call_output"


class Entry(msgspec.Struct, gc=False):
    """One item and where it stands."""

    key: Key
    """Task and rollout index."""
    attempt: int
    """Number of the attempt."""
    index: int
    """Position over the task's items and the response's."""
    origin: str | None
    """``task``, ``agent`` or ``environment``; None for an output of which nobody says who made it."""
    step: int | None
    """The service's call that the item belongs to, from 1."""
    item: Item
    """The item."""
    executed: bool | None = None
    """Of a call and its output: whether gymkit ran it (True) or it is the agent's own record (False)."""
    answer: Item | None = None
    """Of a call: its output."""
    call: ExecutedCall | None = None
    """Of a call: what gymkit noted when it ran it."""


def entries(key: Key, row: Transcript) -> list[Entry]:
    """Return the items of a rollout in order: those of the task first, then those of its response."""
    attempt = integer(row.attempt) or 0
    if row.usersim_result is not None:
        return _talk(key, attempt, row.usersim_result.conversation_messages or [])
    asked = row.responses_create_params.input if row.responses_create_params else None
    task = [Item(role="user", content=asked)] if isinstance(asked, str) else asked or []
    output = (row.response and row.response.output) or []
    executed = _executed(row)
    steps = _steps(output, executed, row)
    found = [Entry(key, attempt, index, "task", None, item) for index, item in enumerate(task)]
    made = [Entry(key, attempt, len(task) + i, "agent", steps[i], item) for i, item in enumerate(output)]
    _pair(made, executed)
    return found + made


def _talk(key: Key, attempt: int, messages: Sequence[Message]) -> list[Entry]:
    """Return a conversation with a simulated user as items: the user and the tools belong to the environment."""
    found: list[Entry] = []
    step = 0
    for message in messages:
        agent = message.role == "assistant"
        step += agent
        items = list(_items(message))
        origin, run = ("agent" if agent else "environment"), (None if message.role == "user" else True)
        for item in items:
            ran = run if item.type in (CALL, OUTPUT) else None
            found.append(Entry(key, attempt, len(found), origin, max(step, 1), item, executed=ran))
    outputs = {_hashable(each.item.call_id): each.item for each in found if each.item.type == OUTPUT}
    for entry in found:
        if entry.item.type == CALL:
            entry.answer = outputs.get(_hashable(entry.item.call_id))
    return found


def _items(message: Message) -> Iterator[Item]:
    if message.role == "tool":
        yield Item(type=OUTPUT, call_id=message.tool_call_id, output=message.content)
        return
    if message.reasoning_content:
        yield Item(type="reasoning", content=message.reasoning_content)
    if message.content or not message.tool_calls:
        yield Item(type="message", role=message.role, content=message.content)
    for call in message.tool_calls or ():
        asked = call.function
        name, arguments = (asked.name, asked.arguments) if asked else (None, None)
        yield Item(type=CALL, call_id=call.id, name=name, arguments=arguments)


def _executed(row: Transcript) -> Mapping[int, ExecutedCall] | None:
    """Return the calls that gymkit ran, by the index of their output; None when nothing is known of them."""
    calls = row.gymkit.calls if row.gymkit else None
    return None if calls is None else {index: call for call in calls if (index := integer(call.item)) is not None}


def _pair(made: Sequence[Entry], executed: Mapping[int, ExecutedCall] | None) -> None:
    """Join each output to the first open call before it of the same id, and say who ran the two."""
    open_calls: dict[Any, list[Entry]] = {}
    for index, entry in enumerate(made):
        if entry.item.type == CALL:
            open_calls.setdefault(_hashable(entry.item.call_id), []).append(entry)
        elif entry.item.type == OUTPUT:
            call = executed.get(index) if executed is not None else None
            entry.executed = None if executed is None else call is not None
            entry.origin = None if executed is None else "environment" if call else "agent"
            if asking := open_calls.get(_hashable(entry.item.call_id)):
                asked = asking.pop(0)
                asked.executed, asked.answer, asked.call = entry.executed, entry.item, call
                asked.step = entry.step if call else asked.step


def _hashable(call_id: Any) -> Any:
    return call_id if isinstance(call_id, str) else repr(call_id)


def _steps(output: Sequence[Item], executed: Mapping[int, ExecutedCall] | None, row: Transcript) -> list[int | None]:
    """Return the step of each item of ``output``, None where the row does not determine it.

    The outputs that gymkit appended carry their step. What stands between two of them came with the reply to the
    first and asked for the second; if a reply in between added nothing to run, it cannot be told which of the two
    wrote an item.
    """
    if executed is None or row.gymkit is None:
        return [None] * len(output)
    steps: list[int | None] = [None] * len(output)
    following = integer(row.gymkit.steps)
    before = _steps_before(output, executed)
    for index in range(len(output) - 1, -1, -1):
        if index in executed:
            following = steps[index] = integer(executed[index].step)
        elif following is not None and before[index] + 1 >= following:
            steps[index] = following
    return steps


def _steps_before(output: Sequence[Item], executed: Mapping[int, ExecutedCall]) -> list[int]:
    steps, last = [], 0
    for index in range(len(output)):
        last = (integer(executed[index].step) or last) if index in executed else last
        steps.append(last)
    return steps


def joined(content: Content | Any, separator: str = "") -> str | None:
    """Return the text of ``content``, refusals included; None when it has none."""
    if not isinstance(content, list):
        return content
    return separator.join([text for text in map(_part_text, content) if isinstance(text, str)])


def _part_text(part: Any) -> Any:
    return part.refusal if part.text is None else part.text


def item_text(item: Item) -> str | None:
    """Return what an item says: a message's text, a call's output, a reasoning item's summary and text, else None."""
    if item.type == OUTPUT:
        return joined(item.output)
    if item.type == "reasoning":
        return "\n".join(text for text in (joined(item.summary, "\n"), joined(item.content, "\n")) if text)
    if item.content is not None:
        return joined(item.content)
    return "" if kind(item) == "message" else joined(item.output)


def kind(item: Item) -> Any:
    """Return which kind of item it is; a message of the short form has no type, only a role."""
    return "message" if item.type is None and item.role is not None else item.type


def walk(rows: Iterator[tuple[Key, Transcript, Place]]) -> Iterator[tuple[Entry, int]]:
    """Yield the entries of each row, each with its share of the row's bytes."""
    for key, row, place in rows:
        found = entries(key, row)
        for entry in found:
            yield entry, place.size // len(found)
