"""The rules about tool calls that go wrong, whoever is to blame for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gymkit.sdk.check import excerpt
from gymkit.sdk.check.evidence import Evidence
from gymkit.sdk.check.finding import Judgement, Rule, passed, skipped


def _survives(rule: str) -> Callable[[Evidence], Judgement]:
    def judge(seen: Evidence) -> Judgement:
        played = seen.disturbed.get(rule)
        if played is None or not played.row or not played.met:
            quiet = seen.first and seen.first.finished and not seen.first.asks
            return skipped("it asked for no tool" if quiet else seen.unchecked)
        met = played.met
        if played.broken:
            fix = "Take any text as a tool's output, JSON or not, and read an error as a result to go on from."
            return Judgement("fail", excerpt.request(met), excerpt.answer(played.broken), fix)
        if not played.finished:
            came = f"it went on until {seen.max_steps} calls; its last answer: {excerpt.answer(played.exchanges[-1])}"
            fix = "Bound how often you try again, and answer with a message when it does not help."
            return Judgement("fail", excerpt.request(met), came, fix)
        return passed(
            f"it went on and ended after {excerpt.counted(len(played.exchanges), 'call')}", excerpt.request(met)
        )

    return judge


RULES: Final = (
    Rule(
        "unknown tool",
        "A model sometimes asks for a tool that is not there; the error comes back as that call's output.",
        _survives("unknown tool"),
    ),
    Rule(
        "malformed arguments",
        "A model sometimes writes arguments that are no JSON; they come back in the conversation, with the error.",
        _survives("malformed arguments"),
    ),
    Rule(
        "failing tool",
        "A tool can fail, and what comes back then is the error's text and not the JSON it gives otherwise.",
        _survives("failing tool"),
    ),
)
"""In the order of the contract."""
