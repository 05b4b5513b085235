"""The assistant's side of an episode with a simulated user, told as a response tells an agent's side of a rollout.

What a run's frames say of tokens, tool calls and steps is about who is evaluated. The other roles of an episode (user,
judge, summary, tool simulation) have their tokens in the frame ``invocations``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gymkit.frames.cells import integer
from gymkit.frames.rows import Acted, ItemKind, Outline, Row, Usage

ASSISTANT: Final = "assistant"
CALL: Final = ItemKind("function_call")


def outline(row: Row) -> Outline:
    """Return the calls of the assistant's messages and its tokens, summed; nothing for a row without a simulation."""
    if row.usersim_result is None:
        return Outline()
    messages = row.usersim_result.conversation_messages
    calls = None
    if messages is not None:
        calls = [CALL for each in messages if each.role == ASSISTANT for _ in each.tool_calls or ()]
    told = [(each.response and each.response.usage) or Usage() for each in _acted(row)]
    read, written = _sum([it.input_tokens for it in told]), _sum([it.output_tokens for it in told])
    total = _sum([_total(it) for it in told])
    return Outline(output=calls, usage=Usage(read, written, total))


def steps(row: Row) -> int | None:
    """Return how often the assistant was called; None for a row without a simulation."""
    return None if row.usersim_result is None or row.invocations is None else len(_acted(row))


def _acted(row: Row) -> list[Acted]:
    return [each for each in row.invocations or () if each.role == ASSISTANT]


def _sum(counts: Sequence[Any]) -> int | None:
    """The sum; None where one of them is not known, since a part would look like the whole."""
    known = [count for value in counts if (count := integer(value)) is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _total(usage: Usage) -> int | None:
    told = integer(usage.total_tokens)
    return told if told is not None else _sum([usage.input_tokens, usage.output_tokens])
