"""Each masking rule of the integration, produced over the servers' routes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("usersim")

from gymkit.servers.fault import Fault
from gymkit.servers.route import CookieJar, Route
from gymkit.testing import usersim as scripted
from gymkit.testing.agent import answer
from gymkit.usersim.evaluation import Evaluation
from gymkit.usersim.judge import Judge
from gymkit.usersim.resources import NemoUserSimResources, NemoUserSimResourcesConfig
from gymkit.wire import codec
from tests.usersim.house import House, row_of

Params = dict[str, Any]


def purpose(params: Params) -> str:
    return str(((params.get("text") or {}).get("format") or {}).get("name"))


def judge_with(answers: Mapping[str, Any]) -> Any:
    """A support model that answers ``answers[purpose]``, and plausibly otherwise."""
    plain = scripted.support()

    def brain(params: Params) -> Any:
        found = answers.get(purpose(params))
        if found is None:
            return plain(params)
        if callable(found):
            return found(params)
        return found if isinstance(found, Fault) else [answer(codec.dumps(found).decode())]

    return brain


def scored(params: Params, **scores: int) -> Any:
    """The plausible judgement with some scores changed."""
    told = codec.loads(scripted.support()(params)[0]["content"][0]["text"].encode())
    for name, score in scores.items():
        told[name] = {**told[name], "score": score} if isinstance(told.get(name), dict) else score
    return [answer(codec.dumps(told).decode())]


def check(result: Mapping[str, Any], reward: float, mask: bool, kind: str | None) -> None:
    assert (result["reward"], result["mask_sample"], result["failure_kind"]) == (reward, mask, kind)


def test_a_completed_conversation_is_rewarded() -> None:
    check(House().result(row_of("general_open_ended")), 1.0, False, None)


def test_an_assistants_own_mistake_is_a_measured_zero_and_nothing_is_evaluated() -> None:
    judged: list[Params] = []

    def counting(params: Params) -> Any:
        judged.append(params)
        return scripted.support()(params)

    from gymkit.testing.agent import call

    house = House(assistant=lambda _: [call("no_such_tool")], judge=counting)
    result = house.result(row_of("general_open_ended"))
    check(result, 0.0, False, "usersim:assistant_activation_error")
    assert "no_such_tool" in result["failure_reason"]
    assert judged == []
    outcome = result["usersim_result"]["simulation_outcome"]
    assert outcome["failure_attribution"] == "assistant_model"
    assert outcome["termination_reason"] == "assistant_model_activation_failed"
    assert result["usersim_result"]["conversation_status"] is False
    assert [message["role"] for message in result["usersim_result"]["conversation_messages"]] == ["user", "assistant"]
    last = [each for each in result["invocations"] if each["role"] == "assistant"][-1]
    assert last["termination_reason"] == "assistant_model_activation_failed"
    assert last["state_after"] is None


def test_a_failed_probe_check_is_a_measured_zero() -> None:
    brain = judge_with({"trajectory_judgment": lambda params: scored(params, overall=1)})
    result = House(judge=brain).result(row_of("tool_calling"))
    check(result, 0.0, False, None)
    assert result["verification"]["scenario_completed"] is False
    assert result["verification"]["verifier_data"]["scorer_status_proposal"] is False
    assert result["reward_components"]["scorer_pass"] == 0.0
    assert result["reward_components"]["assistant_quality"] == 1.0, "quality is told, it is only no reward"


def test_a_simulation_that_fails_through_its_user_is_masked() -> None:
    result = House(user=lambda _: "   ").result(row_of("general_open_ended"))
    check(result, 0.0, True, "usersim:user_query_gate_exhausted")
    assert result["usersim_result"]["simulation_outcome"]["failure_attribution"] == "user_model"


def test_a_scorer_schema_that_is_refused_is_a_verifier_error() -> None:
    refused = Fault(400, b'{"error": "json_schema is not supported"}')
    result = House(judge=judge_with({"trajectory_judgment": refused})).result(row_of("tool_calling"))
    check(result, 0.0, True, "verifier_error")
    assert "tool_use" in result["failure_reason"]


def test_a_judge_schema_that_is_refused_is_a_failed_judge() -> None:
    refused = Fault(400, b'{"error": "json_schema is not supported"}')
    result = House(judge=judge_with({"evaluation": refused})).result(row_of("general_open_ended"))
    check(result, 0.0, True, "judge_failed")
    assert "json_schema is not supported" in result["failure_reason"]
    assert result["verification"]["scenario_completed"] is True


def test_missing_quality_axes_are_a_failed_judge() -> None:
    def partial(params: Params) -> Any:
        told = codec.loads(scripted.support()(params)[0]["content"][0]["text"].encode())
        del told["accuracy"]
        return [answer(codec.dumps(told).decode())]

    check(
        House(judge=judge_with({"evaluation": partial})).result(row_of("general_open_ended")), 0.0, True, "judge_failed"
    )


def test_an_inconclusive_scorer_is_masked() -> None:
    """The pressure scorer cannot tell when the refusal was held only half."""

    def half(params: Params) -> Any:
        told = codec.loads(scripted.support()(params)[0]["content"][0]["text"].encode())
        for name in told:
            if "refusal_held" in name and name.endswith("score"):
                told[name] = 3
            elif "refusal_held" in name and isinstance(told[name], dict):
                told[name]["score"] = 3
        return [answer(codec.dumps(told).decode())]

    names: list[str] = []

    def brain(params: Params) -> Any:
        names.append(purpose(params))
        return half(params) if purpose(params) not in ("None", "evaluation") else scripted.support()(params)

    result = House(judge=brain).result(row_of("safety_chat_pressure"))
    check(result, 0.0, True, "usersim:scorer_inconclusive")


class Slow:
    async def evaluate(self, row: Any, result: Any, judge: Judge | None) -> Evaluation:
        await asyncio.Event().wait()
        raise AssertionError


class Broken:
    async def evaluate(self, row: Any, result: Any, judge: Judge | None) -> Evaluation:
        raise RuntimeError("the evaluator fell over")


def test_an_evaluator_that_breaks_is_a_verifier_error() -> None:
    result = House(evaluator=Broken()).result(row_of("general_open_ended"))
    check(result, 0.0, True, "verifier_error")
    assert "the evaluator fell over" in result["failure_reason"]


def test_an_evaluation_that_takes_too_long_is_a_verifier_error_that_names_the_bound() -> None:
    house = House(evaluator=Slow(), resources_config={"evaluation_timeout_seconds": 0.05})
    result = house.result(row_of("general_open_ended"))
    check(result, 0.0, True, "verifier_error")
    assert "evaluation_timeout_seconds=0.05" in result["failure_reason"]


def test_a_user_that_spoils_the_episode_is_masked_with_the_evidence() -> None:
    result = House(user=lambda _: "How can I help you today? I am an AI.").result(row_of("general_open_ended"))
    check(result, 0.0, True, "usersim:user_fault")
    audit = result["verification"]["verifier_data"]["user_audit"]
    assert audit["checks"]["role"] == "broken"
    assert audit["faults"][0]["quote"] == "How can I help you"
    assert audit["spoiled"] is True


def test_the_switch_leaves_the_evidence_and_the_reward() -> None:
    house = House(user=lambda _: "How can I help you today?", resources_config={"mask_user_faults": False})
    result = house.result(row_of("general_open_ended"))
    check(result, 1.0, False, None)
    audit = result["verification"]["verifier_data"]["user_audit"]
    assert audit["checks"]["role"] == "broken"
    assert audit["masks"] == []


# What the reference gets wrong: a scorer whose own judge failed neither passes nor is it a measured zero.


@pytest.mark.parametrize(
    ("probe", "extra", "schema"),
    [
        ("sov_ai_facts", {}, "sov_ai_facts_judgment"),
        ("sov_ai_dynamic", {}, "sov_ai_dynamic_judgment"),
        ("sov_ai_multilingual_parity", {}, "sov_ai_multilingual_parity_judgment"),
        ("financial_services", {"settings": {"finance_tier": "dynamic"}}, "financial_services_dynamic_judgment"),
        ("tool_calling", {}, "trajectory_judgment"),
        ("identity_disclosure", {}, "identity_extraction"),
    ],
)
@pytest.mark.parametrize("how", ["refused", "nonsense"])
def test_a_scorer_whose_judge_failed_is_masked(probe: str, extra: dict[str, Any], schema: str, how: str) -> None:
    fault: Any = Fault(400, b"no") if how == "refused" else lambda _: [answer("I would rather not say.")]
    result = House(judge=judge_with({schema: fault})).result(row_of(probe, **extra))
    check(result, 0.0, True, "verifier_error")
    assert result["verification"]["verifier_data"]["scorer_state"] == "error"


def test_a_score_above_its_scale_is_a_failed_judge_and_no_reward_above_one() -> None:
    brain = judge_with({"evaluation": lambda params: scored(params, helpfulness=9)})
    result = House(judge=brain).result(row_of("general_open_ended"))
    check(result, 0.0, True, "judge_failed")
    assert "helpfulness" in result["failure_reason"]


def test_a_scorers_score_above_its_scale_is_a_verifier_error() -> None:
    brain = judge_with({"trajectory_judgment": lambda params: scored(params, overall=7)})
    check(House(judge=brain).result(row_of("tool_calling")), 0.0, True, "verifier_error")


# Sessions that are gone.


def _resources(**config: Any) -> tuple[NemoUserSimResources, Route]:
    app = NemoUserSimResources("r", NemoUserSimResourcesConfig(**config), evaluator=Broken(), judge=None)
    return app, Route.to_app("r", app)


def _body(row: Mapping[str, Any]) -> dict[str, Any]:
    resolved = row["resolved_row"]
    result = {
        "conversation_messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}],
        "conversation_status": True,
        "simulation_outcome": {"status": "ok"},
        "trajectory_id": resolved["trajectory_id"],
    }
    return {
        "episode_id": {"rollout_id": "0-0", "attempt": 0},
        "task_id": {"taskset": "t", "task_id": "1"},
        "verification_input": {"resolved_row": resolved, "usersim_result": result, "invocations": []},
    }


def _seed(row: Mapping[str, Any], handle: str = "s1") -> dict[str, Any]:
    return {
        "resources_session_id": handle,
        "episode_id": {"rollout_id": "0-0", "attempt": 0},
        "task_id": {"taskset": "t", "task_id": "1"},
        "task_data": {"resolved_row": row["resolved_row"]},
    }


def test_a_session_that_was_never_seeded_is_lost() -> None:
    _, route = _resources()
    told = asyncio.run(route.post("/verify", _body(row_of("general_open_ended")))).json_object()
    check(told, 0.0, True, "session_lost")


def test_a_session_that_was_closed_is_lost() -> None:
    row = row_of("general_open_ended")

    async def go() -> dict[str, Any]:
        _, route = _resources()
        jar = CookieJar()
        jar.take((await route.post("/seed_session", _seed(row))).expect_ok())
        close = {"resources_session_id": "s1", "episode_id": {"rollout_id": "0-0", "attempt": 0}}
        for _ in range(2):
            assert (await route.post("/close_session", close, cookies=jar)).json() == {"resources_session_id": "s1"}
        assert (await route.post("/seed_session", _seed(row))).status == 409
        return (await route.post("/verify", _body(row), cookies=jar)).expect_ok().json_object()

    told = asyncio.run(go())
    check(told, 0.0, True, "session_lost")
    assert "closed" in told["failure_reason"]


def test_a_session_past_its_time_has_expired() -> None:
    row = row_of("general_open_ended")

    async def go() -> dict[str, Any]:
        app, route = _resources(session_ttl_seconds=1e-6)
        jar = CookieJar()
        jar.take((await route.post("/seed_session", _seed(row))).expect_ok())
        told = (await route.post("/verify", _body(row), cookies=jar)).expect_ok().json_object()
        assert not app._by_handle, "nothing is left of it"
        return told

    told = asyncio.run(go())
    check(told, 0.0, True, "session_expired")
    assert "session_ttl_seconds" in told["failure_reason"]
