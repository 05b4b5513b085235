"""The rules about requests out of the ordinary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gymkit.sdk.check import excerpt
from gymkit.sdk.check.evidence import Evidence
from gymkit.sdk.check.finding import Judgement, Rule, passed, skipped


def _answers(name: str, what: str, fix: str) -> Callable[[Evidence], Judgement]:
    def judge(seen: Evidence) -> Judgement:
        exchange = seen.odd.get(name)
        if exchange is None:
            return skipped(seen.unchecked)
        if exchange.error is None:
            return passed(excerpt.answer(exchange), what)
        return Judgement("fail", f"{what}: {excerpt.request(exchange)}", excerpt.answer(exchange), fix)

    return judge


_UNICODE: Final = _answers(
    "odd Unicode",
    "the first task with emoji, combining marks, right-to-left text, U+2028 and control characters behind it",
    "Read and write UTF-8 everywhere, give text to programs on standard input and not as an argument, and split "
    "lines at \\n only.",
)


def _unicode(seen: Evidence) -> Judgement:
    whole = _UNICODE(seen)
    half = seen.odd.get("lone surrogate")
    if whole.result != "pass" or half is None or half.error is None:
        return whole
    fix = "Parse with a reader that takes lone surrogates (Python's json does), and replace them before you encode."
    return Judgement("warn", f"half of an emoji: {excerpt.request(half)}", excerpt.answer(half), fix)


RULES: Final = (
    Rule(
        "extra fields",
        "A task's parameters are sent as they stand in its row, with fields that the service may not know.",
        _answers(
            "extra fields",
            "the first task with fields that no version of the contract has",
            "Ignore what you do not know: no schema that forbids further fields.",
        ),
    ),
    Rule(
        "content shapes",
        "A message's content may be text or a list of parts, with and without a type, and task sets differ in it.",
        _answers(
            "content shapes",
            "the first task spelled the other way: text as parts or parts as text, type written or left out",
            "Read both forms of content, and take an item without a type for a message.",
        ),
    ),
    Rule(
        "odd Unicode",
        "Tasks and tool outputs hold any text, and one that cannot be read fails its rollout each time.",
        _unicode,
    ),
    Rule(
        "large input",
        "A conversation grows with each step, and limits on bodies are met late, in the longest rollouts.",
        _answers(
            "large input",
            "the first task at the end of a conversation of one megabyte",
            "Raise the limit on the size of a body (in a proxy too), and when the model's context is too short answer "
            "with incomplete_details.",
        ),
    ),
)
"""In the order of the contract."""
