"""The rules that show only when several rollouts run at once."""

from __future__ import annotations

from statistics import median
from typing import Final

from gymkit.sdk.check import excerpt
from gymkit.sdk.check.evidence import Evidence
from gymkit.sdk.check.finding import Judgement, Rule, passed, skipped
from gymkit.sdk.check.played import Played
from gymkit.wire import codec

_RUN: Final = 10_000
_BUSY_SECONDS: Final = 0.25


def rollouts_apart(seen: Evidence) -> Judgement:
    """Whether several rollouts at once went as each did alone."""
    done = [played for played in seen.together if played.row and not played.broken]
    if not done:
        return skipped("concurrency=1: never two at once" if seen.concurrency == 1 else seen.unchecked)
    sent = f"{len(seen.together)} rollouts of {len(seen.alone)} tasks, {_in_flight(seen)} at once"
    fix = (
        "Keep each conversation's state under its own cookie, or keep none; look for globals, class attributes and "
        "caches that two requests share."
    )
    if stray := _stray_marker(done):
        return Judgement("fail", sent, stray, fix)
    if seen.starts_clean != "same":
        return skipped("the first task alone does not go the same way twice, so there is nothing to compare with")
    plain = [played for played in done if not played.marker]
    other = [played for played in plain if not played.same_as(seen.alone[played.task])]
    if not other:
        which = "all" if len(done) == len(seen.together) else f"the {len(done)} that came to an end"
        return passed(f"{which} with the same calls and rewards as alone, and no word of another conversation", sent)
    one, alone = other[0], seen.alone[other[0].task]
    came = (
        f"{len(other)} of {len(plain)} went otherwise than alone: task {one.task} alone {alone.in_words()}; "
        f"among others it {one.in_words()}"
    )
    return Judgement("fail" if len(other) * 2 >= len(plain) else "warn", sent, came, fix)


def _stray_marker(done: list[Played]) -> str | None:
    """Words of one conversation that turned up in another."""
    for played in done:
        said = codec.dumps([exchange.output for exchange in played.exchanges]).decode()
        for other in done:
            if other.marker and other is not played and other.marker in said:
                return (
                    f"a rollout of task {played.task} holds the word {other.marker!r}, which only another one was sent"
                )
    return None


def _in_flight(seen: Evidence) -> int:
    """How many rollouts there were at once."""
    return min(len(seen.together), seen.concurrency)


def parallel_calls(seen: Evidence) -> Judgement:
    """Whether several calls at once are answered, and how fast."""
    if not seen.together:
        return skipped("concurrency=1: never two at once" if seen.concurrency == 1 else seen.unchecked)
    many, sent = _in_flight(seen), f"{len(seen.together)} rollouts, {_in_flight(seen)} at once"
    if broken := next((played.broken for played in seen.together if played.broken), None):
        came = f"alone it answered, but among others: {excerpt.answer(broken)}"
        fix = (
            "Serve requests at the same time (ThreadingHTTPServer and not HTTPServer, more workers, no lock), or lower "
            "concurrency= to what the service can take; its log should say what broke."
        )
        return Judgement("fail", f"{sent}; {excerpt.request(broken)}", came, fix)
    if any(not played.row for played in seen.together):
        return skipped(seen.unchecked)
    alone = median(exchange.seconds for exchange in seen.exchanges)
    busy = median(exchange.seconds for played in seen.together for exchange in played.exchanges)
    run = excerpt.duration(seen.together_seconds / len(seen.together) * _RUN)
    came = (
        f"half the calls within {excerpt.duration(busy)}, {excerpt.duration(alone)} one by one; at this pace "
        f"{_RUN:,} rollouts take about {run}"
    )
    if busy > max(_BUSY_SECONDS, 0.75 * many * alone):
        fix = "Serve requests at the same time: more threads or workers, no lock, no blocking call in an async handler."
        return Judgement("warn", sent, came, fix)
    return passed(came, sent)


RULES: Final = (
    Rule(
        "rollouts apart",
        "Rollouts run at the same time; if one sees another's state, every reward is suspect and no error says so.",
        rollouts_apart,
    ),
    Rule(
        "parallel calls",
        "A run calls from many rollouts at once: what is refused then fails, what has to queue makes the run long.",
        parallel_calls,
    ),
)
"""In the order of the contract."""
