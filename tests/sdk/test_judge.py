"""Judges over scripted models and services: what is read, what masks, and that nothing becomes a zero by accident."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

import gymkit as gk
from gymkit.errors import ConfigError, JudgeFailed, JudgeUnparseable
from gymkit.resources.weather import Weather
from gymkit.sdk.defined import DefinedEnv
from gymkit.sdk.judge import Judge
from gymkit.sdk.judgement import form_of
from gymkit.servers.hosting import serve
from gymkit.servers.route import Route
from gymkit.testing.agent import Fault, ScriptedAgent, answer, respond
from gymkit.wire import codec
from gymkit.wire.tasks import TaskRow

GOOD = '{"reason": "kind", "score": 4}'


def says(text: str | Callable[[dict[str, Any]], Any], **options: Any) -> Judge:
    script = text if callable(text) else lambda params: text
    return gk.judge(gk.Model.scripted(script), "Is it polite?", **{"scale": (1, 5), **options})


class Grade(BaseModel):
    """What a strict teacher says."""

    verdict: Literal["right", "wrong"]
    points: Annotated[int, Field(ge=0, le=10)]


SCHEMA = {
    "type": "object",
    "properties": {"right": {"type": "boolean"}, "points": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["right", "points"],
    "additionalProperties": False,
}


# What is read ------------------------------------------------------------------------------------------------------


def test_a_score_has_a_reason_and_a_reward() -> None:
    score = says(GOOD).ask("Thank you!")
    assert (score.score, score.reason, score.reward) == (4.0, "kind", 0.75)
    assert says('{"reason": "", "score": 0.25}', scale=None).ask("x").reward == 0.25
    assert repr(says(GOOD)) == "<Judge scripted>"


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1))
def test_a_reward_is_within_0_and_1_on_every_scale(low: float, width: float, share: float) -> None:
    high = low + width
    score = min(max(low + share * width, low), high)
    read = form_of(None, (low, high)).read(codec.dumps({"reason": "", "score": score}).decode())
    assert 0.0 <= read.reward <= 1.0


@pytest.mark.parametrize("text", [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}```"])
def test_json_is_read_plain_or_fenced(text: str) -> None:
    assert says(text).ask("x").score == 4


def test_an_answer_of_ones_own_form_is_a_model_or_a_dict() -> None:
    grade = says('{"verdict": "right", "points": 9}', answer=Grade, scale=None).ask("x")
    assert grade == Grade(verdict="right", points=9)
    assert says('{"right": true, "points": 3}', answer=SCHEMA, scale=None).ask("x") == {"right": True, "points": 3}


def test_the_model_is_asked_for_the_form_in_both_ways_and_shown_what_to_judge() -> None:
    seen: list[dict[str, Any]] = []

    def script(params: dict[str, Any]) -> str:
        seen.append(params)
        return GOOD

    says(script, params={"temperature": 0}).ask("Hand over the salt.")
    says(script).ask([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    asked = seen[0]
    assert asked["temperature"] == 0
    assert asked["input"] == [{"role": "user", "content": "Hand over the salt."}]
    form = asked["text"]["format"]
    assert (form["type"], form["strict"]) == ("json_schema", True)
    assert list(form["schema"]["properties"]) == ["reason", "score"], "the reason comes first"
    assert form["schema"]["properties"]["score"] | {"minimum": 1, "maximum": 5} == form["schema"]["properties"]["score"]
    assert asked["instructions"].startswith("Is it polite?\n\nAnswer with one JSON object")
    assert '"maximum":5' in asked["instructions"]
    assert [item["role"] for item in seen[1]["input"]] == ["user", "assistant"]


def test_reasoning_beside_the_answer_is_not_read() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "{}"}]}
    assert says(lambda params: respond([reasoning, answer(GOOD)])).ask("x").score == 4


# What masks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("It is polite: 4 of 5.", "is not JSON .*'It is polite: 4 of 5.'"),
        ("", "is not JSON"),
        (f"Sure! {GOOD}", "is not JSON"),
        (f"{GOOD} {GOOD}", "is not JSON"),
        ('{"reason": "x", "score": NaN}', "is not JSON"),
        ("[4]", r"another form \(the whole: must be an object, not a list\)"),
        ("4", "another form"),
        ('{"score": 4}', "reason: is missing"),
        ('{"reason": "x", "score": "4"}', "score: must be a number, not '4'"),
        ('{"reason": "x", "score": true}', "score: must be a number, not true"),
        ('{"reason": "x", "score": null}', "score: must be a number, not null"),
        ('{"reason": "x", "score": 4, "sorce": 5}', "sorce: is not a field"),
        ('{"reason": 3, "score": 9}', "reason: must be text"),
        ("half \ud83d", "is not JSON"),
    ],
)
def test_an_answer_that_cannot_be_read_is_no_score(text: str, told: str) -> None:
    with pytest.raises(JudgeUnparseable, match=f"^the judge's answer .*{told}"):
        says(text).ask("x")


@pytest.mark.parametrize("score", ["0.99", "5.01", "-1", "1e300"])
def test_a_score_outside_its_scale_is_a_failure_of_the_judge(score: str) -> None:
    with pytest.raises(JudgeFailed, match=r"scored outside its scale: score: must be (less|greater) than or equal to"):
        says(f'{{"reason": "x", "score": {score}}}').ask("x")


def test_bounds_of_ones_own_form_are_a_scale_too() -> None:
    with pytest.raises(JudgeFailed, match="outside its scale: points"):
        says('{"verdict": "right", "points": 11}', answer=Grade, scale=None).ask("x")
    with pytest.raises(JudgeFailed, match="outside its scale: points: 11 is greater than the maximum of 10"):
        says('{"right": true, "points": 11}', answer=SCHEMA, scale=None).ask("x")
    with pytest.raises(JudgeUnparseable, match="verdict"):
        says('{"verdict": "maybe", "points": 11}', answer=Grade, scale=None).ask("x")
    with pytest.raises(JudgeUnparseable, match="right"):
        says('{"right": "yes", "points": 11}', answer=SCHEMA, scale=None).ask("x")


def test_a_refusal_and_an_answer_that_was_cut_are_no_scores() -> None:
    refusal = answer("")
    refusal["content"] = [{"type": "refusal", "refusal": "I would rather not."}]
    with pytest.raises(JudgeUnparseable, match="I would rather not"):
        says(lambda params: respond([refusal])).ask("x")
    cut = respond([answer(GOOD)], incomplete_details={"reason": "max_output_tokens"})
    with pytest.raises(JudgeUnparseable, match=r"cut short \(max_output_tokens\)"):
        says(lambda params: cut).ask("x")
    failed = respond([], status="failed", error={"code": "server_error", "message": "out of memory"})
    with pytest.raises(JudgeFailed, match="out of memory"):
        says(lambda params: failed).ask("x")


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Fault(503, b"come back later"), "503"),
        (Fault(401, b"no"), "401"),
        (Fault(302, b"", {"location": "http://elsewhere"}), "redirects are never followed"),
        (Fault(200, b"<html>"), "not JSON"),
        (Fault(200, b"[]"), "not an object"),
        ({"object": "response"}, "the Response is invalid"),
        (Fault(200, seconds=30), "did not answer within timeout=0.3 s"),
    ],
)
def test_a_judge_that_cannot_be_asked_has_failed(reply: Any, told: str) -> None:
    with serve(ScriptedAgent(lambda params: reply)) as hosted, pytest.raises(JudgeFailed, match=told):
        gk.judge(hosted.url, "x", timeout=0.3).ask("x")


def test_nobody_there_is_a_failure_too() -> None:
    with serve(ScriptedAgent(lambda params: GOOD)) as hosted:
        url = hosted.url
    with pytest.raises(JudgeFailed, match="cannot be reached"):
        gk.judge(url, "x").ask("x")


# Where it is asked -------------------------------------------------------------------------------------------------


def test_a_model_server_at_a_url_a_route_and_a_service_that_knows_no_forms() -> None:
    model = gk.Model.scripted(lambda params: GOOD)
    with model.serve() as hosted:
        for url in (hosted.url, f"{hosted.url}/v1", f"{hosted.url}/"):
            assert gk.judge(url, "x", scale=(1, 5)).ask("x").score == 4
        assert gk.judge(Route.to_url("it", hosted.url), "x", scale=(1, 5)).ask("x").score == 4
    assert gk.judge(Route.to_app("it", model.server()), "x", scale=(1, 5)).ask("x").score == 4


def test_a_service_that_refuses_the_form_is_asked_again_without_and_from_then_on() -> None:
    asked: list[bool] = []

    def service(params: dict[str, Any]) -> Any:
        asked.append("text" in params)
        return Fault(400, b"unknown field: text") if "text" in params else respond([answer(GOOD)])

    with serve(ScriptedAgent(service)) as hosted:
        judge = gk.judge(hosted.url, "x", scale=(1, 5))
        assert [judge.ask("x").score for _ in range(2)] == [4, 4]
    assert asked == [True, False, False]


def test_a_service_that_refuses_anything_is_not_taken_for_one_without_forms() -> None:
    with serve(ScriptedAgent(lambda params: Fault(400, b"no such model"))) as hosted:
        judge = gk.judge(hosted.url, "x")
        for _ in range(2):
            with pytest.raises(JudgeFailed, match="no such model"):
                judge.ask("x")


def test_a_key_is_in_no_error(tmp_path: Path) -> None:
    """Whatever the service repeats of it: the model holds the key, and the judge never sees it."""
    secret = "sk-very-secret-0123456789"
    tell = ScriptedAgent(lambda params: Fault(401, f"Incorrect API key provided: {secret}".encode()))
    with serve(tell) as hosted:
        judge = gk.judge(gk.Model(f"{hosted.url}/v1", "big", api_key=secret), "x")
        with pytest.raises(JudgeFailed) as caught:
            judge.ask("x")
        assert f"Bearer {secret}" in tell.received[0].headers["authorization"]
        env = judged(judge)
        verdict = env.session(0).verify("x")
    assert secret not in f"{caught.value!r} {caught.value} {judge!r} {verdict}"
    assert "401" in str(caught.value)
    assert verdict["failure_kind"] == "judge_failed"


@pytest.mark.parametrize("url", ["ftp://x", "http://user:pw@x", "nowhere"])
def test_a_url_that_cannot_be_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="judge: the model's URL") as caught:
        gk.judge(url, "x")
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scale": (5, 1)}, r"scale=\(5, 1\) must be the lowest and the highest"),
        ({"scale": (0, float("inf"))}, "scale"),
        ({"scale": (0, 1), "answer": Grade}, "scale is for the default form"),
        ({"scale": None, "answer": 3}, "must be a pydantic model or a JSON schema, not 3"),
        ({"scale": None, "answer": {"type": "array"}}, "JSON schema with"),
        ({"scale": None, "answer": {"type": "object", "properties": 3}}, "answer is no JSON schema"),
        ({"timeout": 0}, "timeout=0 must be"),
    ],
)
def test_a_judge_that_cannot_be_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        says(GOOD, **options)


def test_many_questions_at_once_leave_no_connection_behind(recwarn: pytest.WarningsRecorder) -> None:
    async def ask(url: str) -> list[float]:
        judge = gk.judge(url, "x", scale=(1, 5))
        return [each.score for each in await asyncio.gather(*[judge.aask(str(number)) for number in range(20)])]

    with gk.Model.scripted(lambda params: GOOD).serve() as hosted:
        assert asyncio.run(ask(hosted.url)) == [4.0] * 20
    gc.collect()
    assert not [warning for warning in recwarn if "unclosed" in str(warning.message).lower()]


# In environments ---------------------------------------------------------------------------------------------------


def said(response: dict[str, Any]) -> str:
    return "".join(part["text"] for item in response["output"] for part in item.get("content", ()))


def judged(judge: Judge, *, plain: bool = False) -> DefinedEnv:
    env = gk.Env.define("polite", tasks=[{"prompt": "Ask for the salt."}, {"prompt": "Ask for the bill."}])

    @env.verify
    async def check(state: Any, task: Any, response: dict[str, Any]) -> float:
        return float((await judge.aask(said(response))).reward)

    if plain:

        @env.verify
        def plainly(state: Any, task: Any, response: dict[str, Any]) -> float:
            return float(judge.ask(said(response)).reward)

    return env


@pytest.mark.parametrize("plain", [False, True])
def test_a_verifier_asks_it_either_way(plain: bool) -> None:
    env = judged(says(lambda params: GOOD if "please" in str(params["input"]) else GOOD.replace("4", "1")), plain=plain)
    assert env.session(0).verify("The salt, please.")["reward"] == 0.75
    assert env.session(0).verify("Salt!")["reward"] == 0.0


def test_a_plain_call_on_the_loop_is_told_what_to_do() -> None:
    env = gk.Env.define("polite", tasks=[{"prompt": "x"}])
    judge = says(GOOD)

    @env.verify
    async def check(state: Any, task: Any, response: dict[str, Any]) -> float:
        return float(judge.ask("x").reward)

    verdict = env.session(0).verify("x")
    assert verdict["mask_sample"]
    assert "await the twin with the prefix 'a'" in verdict["failure_reason"]


@pytest.mark.parametrize("plain", [False, True])
def test_in_a_run_what_the_judge_did_not_measure_is_in_no_mean(plain: bool, tmp_path: Path) -> None:
    """Task 0 meets a judge that is away, task 1 one that mumbles, and a third is scored."""
    replies = {"salt": Fault(500), "bill": "hm", "tea": GOOD}
    judge = says(lambda params: next(reply for word, reply in replies.items() if word in str(params["input"])))
    env = judged(judge, plain=plain)
    three = gk.Env.define("polite", tasks=[{"prompt": word} for word in replies])
    three.verify(env.definition.roles["verify"])
    agent = gk.Agent(lambda params: f"The {params['input'][0]['content']}, please.", name="guest")
    rollouts = three.rollouts(agent, output=tmp_path / "r.jsonl", progress=False)
    rewards = rollouts.rewards.sort_values("task_index")
    assert rewards["status"].tolist() == ["failed", "masked", "scored"]
    assert rewards["reward"].mean() == 0.75
    assert rollouts.failures["failure_class"].tolist() == ["judge_failed"]
    assert rollouts.failures["message"][0].endswith("the judge gave no answer: judge_model: the service is broken")
    assert rollouts.masks.set_index("task_index").loc[1, "failure_kind"] == "judge_unparseable"
    replies["salt"] = GOOD
    again = three.rollouts(agent, output=tmp_path / "r.jsonl", resume=True, progress=False)
    assert again.rewards.sort_values("task_index")["status"].tolist() == ["scored", "masked", "scored"]


class Judged(Weather):
    """A class-based environment with a judge."""

    judge: Judge

    async def verify(self, state: None, task: TaskRow, response: dict[str, Any]) -> float:  # type: ignore[override]
        return float((await self.judge.aask(said(response))).reward)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [(Fault(500), "judge_failed"), ("hm", "judge_unparseable"), (GOOD.replace("4", "9"), "judge_failed")],
)
def test_a_class_based_environment_is_kept_from_zeros_as_well(reply: Any, kind: str) -> None:
    server = Judged("judged")
    server.judge = says(lambda params: reply)
    verdict = gk.Env(server, tasks=gk.Env("weather").rows).session(0).verify("x")
    assert (verdict["mask_sample"], verdict["failure_kind"]) == (True, kind)
    assert ("_ng_failure_class" in verdict) == (kind == "judge_failed")


# Saved -------------------------------------------------------------------------------------------------------------

at_a_url = gk.judge("http://127.0.0.1:9", 'Say "right" or not.', answer=Grade, timeout=5.0, params={"temperature": 0})
at_a_model = gk.judge(gk.Model.scripted(lambda params: GOOD), "x")


async def by_url(state: Any, task: Any, response: Any) -> float:
    return float((await at_a_url.aask("x")).points / 10)


def by_model(state: Any, task: Any, response: Any) -> float:
    return float(at_a_model.ask("x").reward)


def test_a_judge_at_a_url_is_saved_with_its_form_and_one_that_holds_a_model_is_not(tmp_path: Path) -> None:
    env = gk.Env.define("graded", tasks=[{"prompt": "x"}])
    env.verify(by_url)
    text = (env.save(tmp_path / "graded") / "environment.py").read_text()
    assert "at_a_url = gk.judge('http://127.0.0.1:9', 'Say \"right\" or not.', answer=Grade, timeout=5.0" in text
    assert text.index("class Grade(BaseModel)") < text.index("at_a_url = ")
    opened = gk.Env(tmp_path / "graded").session(0).verify("x")
    assert opened["failure_kind"] == "judge_failed"
    env.verify(by_model)
    with pytest.raises(ConfigError, match="by_model asks at_a_model, whose model only this notebook has"):
        env.save(tmp_path / "other")
