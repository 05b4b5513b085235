"""The rules that show only in whole conversations, one after the other."""

from __future__ import annotations

from typing import Final

from gymkit.sdk.check import excerpt
from gymkit.sdk.check.evidence import Evidence
from gymkit.sdk.check.finding import Judgement, Rule, passed, skipped

COOKIE_BYTES: Final = 4096
"""What servers and proxies take of cookies without complaint."""


def _called_again(seen: Evidence) -> Judgement:
    blame = seen.blame()
    if blame and blame.rule == "called again":
        return Judgement(
            "fail",
            excerpt.request(blame.exchange),
            excerpt.answer(blame.exchange),
            "Take a conversation that holds your own earlier items and their outputs, and go on from there.",
        )
    most = max((len(played.exchanges) for played in seen.alone if not played.broken), default=0)
    if most > 1:
        return passed(f"up to {most} calls in one conversation")
    return skipped("it ended each conversation at its first answer" if most else seen.unchecked)


def _finishes(seen: Evidence) -> Judgement:
    done = [played for played in seen.alone if played.ended and not played.broken]
    if not done:
        return skipped(seen.unchecked)
    for played in done:
        last = played.exchanges[-1]
        if not played.finished:
            bound = f"{seen.max_steps} calls" if played.ended == "max_steps" else "run_timeout_secs"
            came = f"task {played.task} went on until {bound}; its last answer: {excerpt.answer(last)}"
            fix = (
                "When the conversation holds the results you need, answer with an assistant message and no call; when "
                "you cannot go on, set incomplete_details."
            )
            return Judgement("fail", excerpt.request(last), came, fix)
        if played.ended == "incomplete":
            calls = excerpt.counted(len(played.exchanges), "call")
            came = f"task {played.task} ended with incomplete_details after {calls}"
            fix = "Set incomplete_details only when the answer had to be cut, for example by a token limit."
            return Judgement("warn", excerpt.request(last), came, fix)
        if played.failure_kind == "verify":
            came = f"task {played.task}: {played.row['error']}"
            return Judgement("warn", excerpt.request(last), came, "Read what the environment's verifier needs.")
    steps = ", ".join(str(len(played.exchanges)) for played in done)
    rewards = ", ".join("none" if played.reward is None else f"{played.reward:g}" for played in done)
    return passed(f"{excerpt.counted(len(done), 'task')} ended, after {steps} calls; rewards {rewards}")


def _cookies(seen: Evidence) -> Judgement:
    blame = seen.blame()
    if blame and blame.rule == "cookies":
        came = f"{excerpt.answer(blame.exchange)}; without cookies the same request was answered"
        fix = "Read the cookie back as it was set: the same name, key and signature, in every worker of the service."
        return Judgement("fail", excerpt.request(blame.exchange), came, fix)
    if not any(exchange.reply for exchange in seen.exchanges):
        return skipped(seen.unchecked)
    if not seen.sets_cookies:
        return skipped("it sets none, so there is none to keep")
    names = sorted({name for each in seen.exchanges if each.reply for name in each.reply.cookies()})
    set_in = f"it sets {', '.join(names)}"
    size = max(sum(len(name) + len(value) for name, value in each.cookies.items()) for each in seen.exchanges)
    if size > COOKIE_BYTES:
        fix = "Keep the state in the service and only its key in the cookie."
        return Judgement("warn", "the cookies it had set", f"{set_in}, {size:,} bytes in all", fix)
    if shared := _shared_cookie(seen):
        came = f"{set_in}; {shared} has the same value in {1 + len(seen.again) + len(seen.others)} conversations"
        fix = "Make a fresh value for each request that comes without the cookie, if state hangs on it."
        return Judgement("warn", "first requests of conversations, without cookies", came, fix)
    return passed(f"{set_in}; what came back was understood")


def _shared_cookie(seen: Evidence) -> str | None:
    """A cookie that every conversation gets with the same value."""
    openings = [played.exchanges[0].reply for played in (*seen.alone, *seen.again) if played.exchanges]
    jars = [{name: value for name, value in reply.cookies().items() if value} for reply in openings if reply]
    if len(jars) < 2:
        return None
    return next((name for name, value in jars[0].items() if all(jar.get(name) == value for jar in jars)), None)


def _without_cookies(seen: Evidence) -> Judgement:
    if seen.bare is None:
        stateless = not seen.sets_cookies and any(exchange.response for exchange in seen.exchanges)
        return skipped("it sets none, so every call is without" if stateless else seen.unchecked)
    if seen.bare.error is None:
        return passed(excerpt.answer(seen.bare), excerpt.request(seen.bare))
    fix = "When the cookie is missing or its state is gone, begin from the request's input: it holds all that was said."
    return Judgement("warn", excerpt.request(seen.bare), excerpt.answer(seen.bare), fix)


def _repeated(seen: Evidence) -> Judgement:
    if seen.repeated is None or seen.first is None:
        return skipped(seen.unchecked)
    before, sent = seen.first.exchanges[-1], excerpt.request(seen.repeated)
    if seen.repeated.error:
        fix = "Let an answer depend on the request alone, or keep each conversation for a while after its last answer."
        return Judgement("fail", sent, excerpt.answer(seen.repeated), fix)
    if seen.repeated.asks != before.asks:
        came = f"the first time {excerpt.answer(before)}; the second time {excerpt.answer(seen.repeated)}"
        fix = "Count steps by the conversation in the request, not by the requests; if the agent samples, this is fine."
        return Judgement("warn", sent, came, fix)
    return passed("the same step as the first time", sent)


def _clean_start(seen: Evidence) -> Judgement:
    outcome = seen.starts_clean
    if not seen.first or not outcome:
        return skipped(seen.unchecked)
    if outcome == "same":
        return passed("the same calls and reward as the first time", "the first task once more")
    later = " or ".join(dict.fromkeys(each.in_words() for each in seen.again))
    came = f"the first time it {seen.first.in_words()}; then it {later}"
    if outcome == "worse":
        fix = "Keep nothing between conversations: no global counter, history or flag that a fresh request meets."
        return Judgement("fail", "the first task, three times", came, fix)
    fix = "If the agent samples, nothing; if it should not, look for state that outlives a conversation."
    return Judgement("warn", "the first task, three times", came, fix)


RULES: Final = (
    Rule(
        "called again",
        "A rollout calls the service once a step, each time with the whole conversation so far.",
        _called_again,
    ),
    Rule(
        "finishes",
        "A conversation that does not end costs all its steps and is scored as it stands when it is cut.",
        _finishes,
    ),
    Rule(
        "cookies",
        "Your cookies come back on each later call of the same rollout and are all that tells two rollouts apart.",
        _cookies,
    ),
    Rule(
        "without cookies",
        "After a restart, or behind a balancer without affinity, the conversation in the request is all there is.",
        _without_cookies,
    ),
    Rule(
        "repeated request",
        "A request whose connection broke is sent again, though the service may have answered it.",
        _repeated,
    ),
    Rule(
        "clean start",
        "Retries and repeats of a task have to start from nothing, or the first rollout decides all others.",
        _clean_start,
    ),
)
"""In the order of the contract."""
