"""The check of environments: ours pass, and for each rule there is an environment that breaks it and no other."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import gymkit as gk
from gymkit.errors import ConfigError, JudgeFailed
from gymkit.resources.counter import Counter
from gymkit.sdk.check import Report
from gymkit.sdk.defined import DefinedEnv
from gymkit.sdk.env_check import RULES, samples
from gymkit.sdk.session import Session
from gymkit.servers.http import Request
from gymkit.servers.tool import ToolAnswer

TASKS: list[dict[str, Any]] = [
    {"prompt": "Which word has the letters eilnst?", "word": "listen"},
    {"prompt": "Which word has the letters dgo?", "word": "dog"},
]


def said(response: dict[str, Any]) -> str:
    messages = [item for item in response["output"] if item["type"] == "message"]
    return str(messages[-1]["content"][0]["text"]) if messages else ""


def good(tasks: list[dict[str, Any]] = TASKS) -> DefinedEnv:
    env = gk.Env.define("good", tasks=tasks)

    @env.tool
    def shuffle(state: dict[str, Any], letters: str) -> str:
        """Put letters in order.

        Args:
            letters: The letters.
        """
        state["tries"] = state.get("tries", 0) + 1
        return f"{''.join(sorted(letters))} {state['tries']}"

    @env.verify
    def check(state: dict[str, Any], task: Any, response: dict[str, Any]) -> float:
        return float(said(response) == task.word)

    return env


def results(report: Report) -> dict[str, str]:
    """What is not well, but for what closures in this file bring with them."""
    found = {each.rule: each.result for each in report.findings if each.result in ("fail", "warn")}
    return {rule: result for rule, result in found.items() if rule != "self-contained"}


def finding(report: Report, rule: str) -> Any:
    return next(each for each in report.findings if each.rule == rule)


def test_a_good_environment_passes_every_rule() -> None:
    report = good().check(solution="word")
    assert report.ok
    assert [each.rule for each in report.findings] == [rule.name for rule in RULES]
    assert {each.result for each in report.findings} == {"pass"}
    assert repr(report) == "<Report good: 19 pass>"
    assert "good: 19 pass" in str(report)
    assert "with the tasks of" not in str(report) + report._repr_html_()
    assert report.calls > 40


def test_a_tool_that_later_tasks_declare_and_nobody_serves_is_found_without_playing_them() -> None:
    report = good([*TASKS, *TASKS, *declaring(name="look")]).check()
    assert results(report) == {"declared tools": "fail"}
    assert "look: declared, and not served" in finding(report, "declared tools").came


@pytest.mark.parametrize("name", ["counter", "weather", "synonyms"])
def test_the_environments_we_ship_pass(name: str) -> None:
    report = gk.Env(name).check()
    assert results(report) == {}
    assert finding(report, "perfect answer").result == "skip"


def test_a_far_environment_is_judged_like_a_near_one() -> None:
    env = good()
    with env.serve() as hosted:
        report = gk.Env(hosted.url, tasks=env.rows).check(solution="word")
    assert results(report) == {}


# One environment for each rule -------------------------------------------------------------------------------------


def with_tool(function: Callable[..., Any], **options: Any) -> DefinedEnv:
    env = good(**options)
    function.__name__ = "shuffle"
    env.tool(function)
    return env


def with_verifier(function: Callable[..., Any]) -> DefinedEnv:
    env = good()
    env.verify(function)
    return env


def declaring(**tool: Any) -> list[dict[str, Any]]:
    whole = {"type": "function", "name": "shuffle", "description": "x", "parameters": {"type": "object"}} | tool
    return [{"responses_create_params": {"input": "x", "tools": [whole]}, "word": "listen"}]


def without_words(state: Any, letters: str) -> str:
    return letters


def raising(state: Any, letters: str) -> str:
    """Fail.

    Args:
        letters: The letters.
    """
    raise ValueError(f"no {letters}")


def unsendable(state: Any, letters: str) -> object:
    """Give what cannot be sent.

    Args:
        letters: The letters.
    """
    return object()


def at_random(numbers: Any) -> Callable[..., Any]:
    def shuffle(state: Any, letters: str) -> int:
        """Roll a die.

        Args:
            letters: The letters.
        """
        return int(next(numbers))

    return shuffle


def shared(board: dict[str, str]) -> Callable[..., Any]:
    async def shuffle(state: Any, letters: str) -> str:
        """Write on a board that hangs in the hall.

        Args:
            letters: The letters.
        """
        board["text"] = letters
        for _ in range(5):
            await asyncio.sleep(0)
        return board["text"]

    return shuffle


def spoiling(state: dict[str, Any], task: Any, response: Any) -> float:
    if "done" in state:
        raise RuntimeError("verified already")
    state["done"] = True
    return float(said(response) == task.word)


def seeding_some() -> DefinedEnv:
    env = good()

    @env.seed
    def start(task: Any) -> dict[str, Any]:
        return {"word": {"listen": "silent"}[task.word]}

    return env


def no_judge(state: Any, task: Any, response: Any) -> float:
    raise JudgeFailed("the judge is out")


class Brittle(Counter):
    """Breaks at arguments that do not fit."""

    async def call_tool(self, session: Any, name: str, arguments: Any) -> ToolAnswer:
        answer = await super().call_tool(session, name, arguments)
        return ToolAnswer(500, b'"boom"') if answer.status == 422 else answer


class Trusting(Counter):
    """Takes any arguments."""

    async def call_tool(self, session: Any, name: str, arguments: Any) -> ToolAnswer:
        answer = await super().call_tool(session, name, arguments)
        return ToolAnswer(200, b'{"success":true}') if answer.status == 422 else answer


class Resentful(Counter):
    """Ends the session of who called it wrongly."""

    async def call_tool(self, session: Any, name: str, arguments: Any) -> ToolAnswer:
        answer = await super().call_tool(session, name, arguments)
        if answer.status == 422:
            self.sessions.drop(session)
        return answer


class Obliging(Counter):
    """Has every tool that anybody can think of."""

    async def other(self, request: Request) -> Any:
        if request.path.removeprefix("/") in self.tools:
            return await super().other(request)
        return {"ok": True}


class Once(Counter):
    """Answers a question once."""

    def verify(self, state: Any, task: Any, response: dict[str, Any]) -> float:
        if state.count is None:
            raise RuntimeError("verified already")
        state.count = None
        return 0.0


class Bare(Counter):
    """Sets no cookie on a seed."""

    async def _seed_session(self, request: Request) -> Any:
        answer = await super()._seed_session(request)
        answer.headers = [line for line in answer.headers if line[0] != b"set-cookie"]
        return answer


def of(server: type[Counter]) -> gk.Env:
    return gk.Env(server("counter"), tasks=gk.Env("counter").rows)


BROKEN: list[tuple[str, str, str, Callable[[], gk.Env]]] = [
    ("tasks", "fail", "responses_create_params.input", lambda: good([{"responses_create_params": {"input": 3}}])),
    (
        "tasks",
        "fail",
        "expected_count: Field required",
        lambda: gk.Env(
            Counter("c"), tasks=[{k: row[k] for k in row if k != "expected_count"} for row in gk.Env("counter").rows]
        ),
    ),
    (
        "declared tools",
        "fail",
        "unknown tool 'look'",
        lambda: good([*declaring(name="look"), {"prompt": "x", "word": "y"}]),
    ),
    (
        "declared tools",
        "warn",
        "shuffle: served, and declared in no task",
        lambda: good([{"responses_create_params": {"input": "x", "tools": []}, "word": "listen"}]),
    ),
    (
        "declared tools",
        "warn",
        "shuffle: declared otherwise than it is served",
        lambda: good(
            declaring(
                parameters={
                    "type": "object",
                    "properties": {"letters": {"type": "string", "description": "x"}, "n": {"description": "x"}},
                    "required": ["letters"],
                }
            )
        ),
    ),
    ("descriptions", "warn", "no description: shuffle, shuffle(letters)", lambda: with_tool(without_words)),
    ("tools answer", "warn", "ValueError: no abc", lambda: with_tool(raising)),
    ("bad arguments", "fail", "boom", lambda: of(Brittle)),
    ("bad arguments", "fail", "session", lambda: of(Resentful)),
    ("bad arguments", "warn", "200", lambda: of(Trusting)),
    ("unknown tool", "fail", "200", lambda: of(Obliging)),
    ("seeds", "fail", "task 1: 500", seeding_some),
    (
        "verifies",
        "fail",
        "masked as verifier_error: ZeroDivisionError",
        lambda: with_verifier(
            lambda state, task, response: float(said(response) == task.word) / (said(response) != "done")
        ),
    ),
    (
        "empty answer",
        "fail",
        "IndexError: list index out of range",
        lambda: with_verifier(
            lambda state, task, response: float(response["output"][-1].get("content", [{}])[0].get("text") == task.word)
        ),
    ),
    ("perfect answer", "fail", "reward 0, as for no answer", lambda: with_verifier(lambda state, task, response: 0)),
    (
        "perfect answer",
        "warn",
        "reward 0.5",
        lambda: with_verifier(lambda state, task, response: (said(response) == task.word) / 2),
    ),
    (
        "perfect answer",
        "fail",
        "masked: solved too well",
        lambda: with_verifier(
            lambda state, task, response: (
                {"mask_sample": True, "failure_reason": "solved too well"} if said(response) == task.word else 0.0
            )
        ),
    ),
    (
        "range",
        "warn",
        "rewards from -1 to 1",
        lambda: with_verifier(lambda state, task, response: 1 if said(response) == task.word else -1),
    ),
    (
        "components",
        "warn",
        "(none) and (right)",
        lambda: with_verifier(
            lambda state, task, response: (
                {"reward": 1, "reward_components": {"right": 1}} if said(response) == task.word else 0
            )
        ),
    ),
    ("verify again", "fail", "500", lambda: of(Once)),
    ("verify again", "warn", "then (0.0, True)", lambda: with_verifier(spoiling)),
    ("same again", "warn", "POST /shuffle", lambda: with_tool(at_random(itertools.count()))),
    ("isolation", "fail", "in the arguments of another rollout", lambda: with_tool(shared({}))),
    (
        "self-contained",
        "warn",
        "shuffle takes numbers from the function that it was written in",
        lambda: with_tool(at_random(itertools.repeat(3))),
    ),
    ("answer key", "warn", "'listen' stands in", lambda: good([{"prompt": "Say listen.", "word": "listen"}])),
]


@pytest.mark.parametrize(("rule", "result", "told", "make"), BROKEN)
def test_what_breaks_a_rule_is_told_under_that_rule_alone(
    rule: str, result: str, told: str, make: Callable[[], gk.Env]
) -> None:
    env = make()
    report = env.check(solution="word" if isinstance(env, DefinedEnv) else None)
    assert results(report) == ({rule: result} if rule != "self-contained" else {})
    found = finding(report, rule)
    assert found.result == result
    assert told in f"{found.sent} {found.came}"
    assert found.fix
    assert found.why


@pytest.mark.parametrize(
    ("make", "rules"),
    [
        (lambda: with_tool(unsendable), {"tools answer": "warn", "JSON results": "fail"}),
        (lambda: good(declaring(parameters={"type": "array"})), {"schemas": "fail", "tools answer": "warn"}),
        (lambda: with_verifier(no_judge), {"verifies": "fail", "empty answer": "fail", "perfect answer": "fail"}),
        (lambda: with_verifier(lambda state, task, response: 1), {"empty answer": "warn", "perfect answer": "fail"}),
        (lambda: of(Bare), {"seeds": "fail", "declared tools": "skip"}),
    ],
)
def test_what_breaks_several_rules(make: Callable[[], gk.Env], rules: dict[str, str]) -> None:
    env = make()
    found = results(env.check(solution="word" if isinstance(env, DefinedEnv) else None))
    for rule, result in rules.items():
        assert found.get(rule, "skip") == result


# Solutions and bounds ----------------------------------------------------------------------------------------------


def test_a_solution_may_play_the_session_plainly_or_not() -> None:
    env = gk.Env("counter")

    def plays(session: Session) -> None:
        session.call("increment_counter", count=session.task["expected_count"] - session.task["initial_count"])

    async def aplays(session: Session) -> str:
        await session.acall("increment_counter", count=session.task["expected_count"] - session.task["initial_count"])
        return "done"

    for solution in (plays, aplays):
        found = finding(env.check(solution), "perfect answer")
        assert (found.result, found.came) == ("pass", "5 tasks solved, the lowest reward 1")


def test_a_solution_that_breaks_is_a_finding_and_a_field_that_is_not_there_a_mistake() -> None:
    def broken(session: Session) -> str:
        return str(session.task["wrod"])

    found = finding(good().check(broken), "perfect answer")
    assert (found.result, found.came) == ("fail", "the solution raised KeyError: 'wrod'")
    with pytest.raises(ConfigError, match="solution='wrod' is no field of the task"):
        good().check(solution="wrod")


def test_the_check_ends_in_time_and_says_what_it_left_out() -> None:
    ended = threading.Event()
    env = good()

    @env.seed
    async def start(task: Any) -> dict[str, Any]:
        if task.word == "dog":
            await asyncio.get_running_loop().create_future()
        return {}

    report = env.check(budget=0.5)
    ended.set()
    assert report.seconds < 10
    assert finding(report, "isolation").came == "the 0.5 s of the check were used up: allow more with budget="


@pytest.mark.parametrize("bound", ["timeout", "budget"])
def test_a_bound_that_is_none_is_refused(bound: str) -> None:
    with pytest.raises(ConfigError, match=f"{bound}=0 must be a number of seconds above 0"):
        good().check(**{bound: 0})


def test_the_check_works_inside_a_running_loop() -> None:
    async def cell() -> Report:
        return await good().acheck("word")

    assert asyncio.run(cell()).ok


# Arguments out of schemas ------------------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.builds(
        lambda low, size: {"type": "integer", "minimum": low, "maximum": low + size},
        st.integers(-9, 9),
        st.integers(0, 9),
    ),
    st.builds(lambda low: {"type": "number", "exclusiveMinimum": low}, st.integers(-9, 9)),
    st.builds(lambda step: {"type": "integer", "multipleOf": step, "minimum": 0}, st.integers(1, 9)),
    st.builds(
        lambda low, size: {"type": "string", "minLength": low, "maxLength": low + size},
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    st.builds(lambda values: {"enum": values}, st.lists(st.text() | st.integers(), min_size=1)),
    st.builds(lambda value: {"const": value}, st.text() | st.booleans()),
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda fields: {
                "type": "object",
                "properties": fields,
                "required": list(fields),
                "additionalProperties": False,
            },
            st.dictionaries(st.text(min_size=1), inner, max_size=3),
        ),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), SCHEMAS, min_size=1))
def test_made_arguments_fit_their_schema(properties: dict[str, Any]) -> None:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    made = samples.arguments({"parameters": parameters})
    Draft202012Validator(parameters).validate(made)


def test_arguments_follow_references_and_leave_out_what_may_be_left_out() -> None:
    parameters = {
        "type": "object",
        "properties": {"card": {"$ref": "#/$defs/Card"}, "more": {"type": "string"}},
        "required": ["card"],
        "$defs": {
            "Card": {"type": "object", "properties": {"suit": {"$ref": "#/$defs/Suit"}}, "required": ["suit"]},
            "Suit": {"enum": ["hearts", "spades"]},
        },
    }
    assert samples.arguments({"parameters": parameters}) == {"card": {"suit": "hearts"}}
    assert samples.arguments({"parameters": {"type": "object", "properties": {"x": {"$ref": "#/$defs/none"}}}}) == {}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_schema_that_is_nonsense_breaks_nothing(schema: Any) -> None:
    assert isinstance(samples.arguments({"parameters": {"properties": {"x": schema}}}), dict)
