"""Rules for sessions and verdicts: seeds, rewards, what nothing and what everything is worth, and who sees whom."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

from gymkit.errors import WireError
from gymkit.sdk.check.excerpt import counted
from gymkit.sdk.check.finding import Judgement, Rule, passed, skipped
from gymkit.sdk.env_check import samples
from gymkit.sdk.env_check.evidence import IDLE, Evidence
from gymkit.sdk.env_check.trial import Trial
from gymkit.wire import codec
from gymkit.wire.verify import check_verify_reply

_STATE: Final = "Keep what changes in the state (the first parameter): a global, a default or a cache is everybody's."
_BROKEN: Final = ("verifier_error", "judge_failed", "judge_unparseable")
_LEAST: Final = 4  # characters of an answer that cannot stand in a prompt by chance


def _seeds(seen: Evidence) -> Judgement:
    if not seen.seeds:
        return skipped(seen.unchecked)
    refused = [trial for trial in seen.seeds if not trial.seeded]
    if refused:
        told = refused[0].seed.came if refused[0].seed else ""
        came = f"task {refused[0].task}: {told} ({counted(len(refused), 'task')} of {len(seen.seeds)})"
        fix = "Let the seed take every task, or correct the task's fields."
        return Judgement("fail", "POST /seed_session", came, fix)
    if not all(trial.jar for trial in seen.seeds):
        fix = "Set a session cookie in the reply of /seed_session: it is all that holds a rollout together."
        return Judgement("fail", "POST /seed_session", "no Set-Cookie", fix)
    left = len(seen.rows) - len(seen.seeds)
    rest = f"; the other {left:,} were not tried" if left else ""
    return passed(f"{counted(len(seen.seeds), 'task')} seeded, each with a session of its own{rest}")


def _verifies(seen: Evidence) -> Judgement:
    verified = [trial for trial in seen.played if trial.verdicts]
    if not verified:
        return skipped(seen.unchecked)
    for trial in verified:
        if problem := _verdict_problem(trial):
            return Judgement(
                "fail", f"POST /verify, task {trial.task}", problem, "Let the verifier score whatever comes."
            )
    return passed(f"{counted(len(verified), 'verdict')}, each with a finite reward")


def _verdict_problem(trial: Trial) -> str | None:
    post = trial.verdicts[0]
    if not post.ok:
        return post.came
    content = post.content
    try:
        check_verify_reply(content)
    except WireError as error:
        return str(error)
    if content.get("failure_kind") in _BROKEN:
        return f"masked as {content['failure_kind']}: {content.get('failure_reason')}"
    return None


def _nothing(seen: Evidence) -> Judgement:
    tried = {name: trial for name, trial in seen.empty.items() if trial.verdicts}
    if not tried:
        return skipped(seen.unchecked)
    for name, trial in tried.items():
        if problem := _verdict_problem(trial):
            fix = "Score a rollout without an answer as what it is; agents end like this every day."
            return Judgement("fail", f"POST /verify with {name}", problem, fix)
    rewards = {name: trial.reward for name, trial in tried.items()}
    if paid := [name for name in IDLE if (rewards.get(name) or 0.0) >= 1.0]:
        fix = "Give an agent that does nothing less than one that does the task."
        return Judgement("warn", f"POST /verify with {paid[0]}", f"reward {rewards[paid[0]]:g}", fix)
    told = ", ".join(f"{name}: {_shown(reward)}" for name, reward in rewards.items())
    return passed(told)


def _perfect(seen: Evidence) -> Judgement:
    if not seen.with_solution:
        return skipped("no solution was given: check(solution=…) takes the answer's field, or a function that plays")
    if not seen.solved:
        return skipped(seen.unchecked)
    for each in seen.solved:
        sent = f"task {each.task}, answered with {each.answer!r:.80}"
        if each.verdict is None:
            return Judgement("fail", sent, each.problem, "See to what broke; then check again.")
        if each.verdict.get("mask_sample"):
            came = f"masked: {each.verdict.get('failure_reason') or each.verdict.get('failure_kind') or 'no reason'}"
            return Judgement("fail", sent, came, "A right answer must be measured.")
    rewards = [float(each.verdict["reward"]) for each in seen.solved if each.verdict]
    idle = (seen.empty[name].reward for name in IDLE if name in seen.empty)
    floor = max((reward for reward in idle if reward is not None), default=-math.inf)
    worst = min(range(len(rewards)), key=rewards.__getitem__)
    sent = f"task {seen.solved[worst].task}, answered with {seen.solved[worst].answer!r:.80}"
    if rewards[worst] <= floor:
        fix = "Compare with what the verifier expects: it does not recognise the right answer."
        return Judgement("fail", sent, f"reward {rewards[worst]:g}, as for no answer", fix)
    if rewards[worst] < 1.0:
        fix = "Give a right answer 1.0, so that rewards of several environments mean the same."
        return Judgement("warn", sent, f"reward {rewards[worst]:g}", fix)
    return passed(f"{counted(len(rewards), 'task')} solved, the lowest reward {min(rewards):g}")


def _range(seen: Evidence) -> Judgement:
    rewards = [float(said["reward"]) for _, said in seen.verdicts if not said.get("mask_sample")]
    if not rewards:
        return skipped(seen.unchecked)
    low, high = min(rewards), max(rewards)
    if low < 0 or high > 1:
        fix = "Scale the reward to 0 to 1: bounds, pass@k and comparisons of environments rest on it."
        return Judgement("warn", counted(len(rewards), "verdict"), f"rewards from {low:g} to {high:g}", fix)
    return passed(f"{counted(len(rewards), 'reward')} from {low:g} to {high:g}")


def _components(seen: Evidence) -> Judgement:
    keys = {frozenset(said.get("reward_components") or ()) for _, said in seen.verdicts if not said.get("mask_sample")}
    if not keys:
        return skipped(seen.unchecked)
    if len(keys) > 1:
        shown = " and ".join(sorted(f"({', '.join(sorted(each)) or 'none'})" for each in keys))
        fix = "Give every component with every verdict, 0.0 where it does not apply."
        return Judgement("warn", "the verdicts' reward_components", shown, fix)
    [names] = keys
    return passed(f"the same in every verdict: {', '.join(sorted(names))}" if names else "none in any verdict")


def _twice(seen: Evidence) -> Judgement:
    pairs = [trial.verdicts for trial in (*seen.alone, *seen.again) if len(trial.verdicts) == 2]
    if not pairs:
        return skipped(seen.unchecked)
    for first, second in pairs:
        if first.ok and not second.ok:
            fix = "Let /verify be asked twice: a reply that got lost is asked for again."
            return Judgement("fail", "the same POST /verify once more", second.came, fix)
        if first.ok and _scored(first.content) != _scored(second.content):
            came = f"reward {_scored(first.content)}, then {_scored(second.content)}"
            fix = "Let the verifier leave the state as it is, and decide nothing by chance."
            return Judgement("warn", "the same POST /verify once more", came, fix)
    return passed(f"{counted(len(pairs), 'verdict')} the same when asked for again")


def _again(seen: Evidence) -> Judgement:
    if not seen.again:
        return skipped(seen.unchecked)
    for one, other in zip(seen.alone, seen.again, strict=False):
        if difference := _difference(one, other):
            sent, before, after = difference
            fix = f"If this is not meant to be random, something outlives its rollout. {_STATE}"
            return Judgement("warn", f"{sent}, in two sessions of task {one.task}", f"{before}; then {after}", fix)
    return passed(f"{counted(len(seen.again), 'task')} played twice in new sessions: the same answers and rewards")


def _isolation(seen: Evidence) -> Judgement:
    together = [trial for trial in seen.together if trial.seeded]
    if len(together) < 2:
        return skipped(seen.unchecked)
    for marked in (trial for trial in together if trial.marker):
        for other in (trial for trial in together if trial is not marked):
            if post := next(
                (each for each in (*other.calls, *other.verdicts) if _holds(each.content, marked.marker)), None
            ):
                sent = f"the text {marked.marker} in the arguments of another rollout, then {post.sent}"
                return Judgement("fail", sent, post.came, _STATE)
    if seen.steady:
        before = {trial.task: trial for trial in seen.alone}
        for trial in (trial for trial in together if not trial.marker):
            if difference := _difference(before[trial.task], trial):
                sent, alone, at_once = difference
                came = f"alone: {alone}; with {len(together)} rollouts at once: {at_once}"
                return Judgement("fail", f"{sent} of task {trial.task}", came, _STATE)
    same = "the same as alone" if seen.steady else "nothing of one in another (they differ from play to play anyway)"
    return passed(f"{counted(len(together), 'rollout')} at once: {same}")


def _holds(content: Any, marker: str) -> bool:
    """Whether a text of another rollout stands in an answer; its own response is echoed and is no leak."""
    if isinstance(content, Mapping):
        content = {key: value for key, value in content.items() if key not in ("response", "responses_create_params")}
    return any(marker in text for text in samples.texts(content))


def _difference(one: Trial, other: Trial) -> tuple[str, str, str] | None:
    """The first call that was answered differently in two trials: what was sent, and both answers."""
    for before, after in zip_longest(one.calls, other.calls):
        if before is None or after is None:
            return f"{counted(len(one.calls), 'call')}", "answered", f"{counted(len(other.calls), 'call')} answered"
        if (before.status, before.content) != (after.status, after.content):
            return before.sent, before.came, after.came
    if one.reward != other.reward:
        return "POST /verify", f"reward {_shown(one.reward)}", f"reward {_shown(other.reward)}"
    return None


def _answer_key(seen: Evidence) -> Judgement:
    if seen.secret is None:
        return skipped("no field of the answer was named: check(solution='…')")
    for task, row in enumerate(seen.rows):
        answer = row.get(seen.secret)
        asked = codec.dumps(row.get("responses_create_params")).decode()
        if isinstance(answer, str) and len(answer) >= _LEAST and answer in asked:
            fix = "Keep the answer out of responses_create_params: all of it is sent to the agent."
            return Judgement("warn", f"task {task}", f"the answer {answer!r:.60} stands in what the agent is sent", fix)
    return passed("no answer stands in what agents are sent")


def _saveable(seen: Evidence) -> Judgement:
    if seen.unsaveable is None:
        return skipped("it is not made of functions of this process")
    if seen.unsaveable:
        return Judgement("warn", "its functions", seen.unsaveable, "Do as it says, and save() gives others the same.")
    return passed("its functions need nothing that only this process has")


def _scored(content: Any) -> Any:
    return (content.get("reward"), content.get("mask_sample")) if isinstance(content, Mapping) else content


def _shown(reward: float | None) -> str:
    return "no reward" if reward is None else f"{reward:g}"


RULES: Final = (
    Rule("seeds", "A task that cannot be seeded fails in every run.", _seeds),
    Rule("verifies", "A verifier that breaks measures nothing, however good the agent.", _verifies),
    Rule(
        "empty answer",
        "Agents end without an answer (a bound, a refusal): that must have a score, and a low one.",
        _nothing,
    ),
    Rule("perfect answer", "If the right answer is not paid, no number of this environment means anything.", _perfect),
    Rule("range", "Rewards are read as 0 to 1 by convention.", _range),
    Rule("components", "A component that comes and goes has no mean.", _components),
    Rule("verify again", "Replies get lost, and the same request comes again.", _twice),
    Rule("same again", "What changes from play to play without a reason is noise in every comparison.", _again),
    Rule("isolation", "Rollouts run by the hundred at once, and must not see each other.", _isolation),
    Rule("answer key", "An agent that is sent the answer is not measured.", _answer_key),
    Rule("self-contained", "What leans on this notebook cannot be saved, or run by anybody else.", _saveable),
)
"""In the order of the report."""
