"""Every probe of the real package runs to a verified row, offline."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("usersim")

from gymkit.testing import usersim as scripted
from gymkit.usersim.rows import known_probes
from gymkit.wire import codec
from tests.usersim.house import House, all_rows, row_of

TOOL_PROBES = ("tool_calling", "safety_agentic", "financial_services")


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    house = House()

    async def play() -> dict[str, dict[str, Any]]:
        found = {}
        for line in all_rows():
            row = codec.loads(line)
            told = await house.arun(row)
            assert told["failure"] is None, told["failure"]
            found[row["resolved_row"]["probe_type"]] = told["result"]
        return found

    return asyncio.run(play())


def test_all_fourteen_are_prepared_and_played(results: dict[str, dict[str, Any]]) -> None:
    assert sorted(results) == sorted(known_probes())
    assert len(results) == 14


def test_each_is_a_measurement(results: dict[str, dict[str, Any]]) -> None:
    for probe, result in results.items():
        assert result["mask_sample"] is False, probe
        assert result["failure_kind"] is None, probe
        assert result["usersim_result"]["conversation_status"] is True, probe


def test_all_but_finance_pass_and_are_rewarded_by_the_three_axes(results: dict[str, dict[str, Any]]) -> None:
    """The scripted assistant does not know the bank's procedures, so the deterministic scorer of finance fails it."""
    for probe, result in results.items():
        expected = 0.0 if probe == "financial_services" else 1.0
        assert result["reward"] == expected, probe
        assert result["verification"]["scenario_completed"] is (expected == 1.0), probe


def test_the_row_repeats_what_the_verifier_says(results: dict[str, dict[str, Any]]) -> None:
    result = results["tool_calling"]
    verification = result["verification"]
    assert {name: verification[name] for name in ("reward", "mask_sample", "failure_kind", "reward_components")} == {
        name: result[name] for name in ("reward", "mask_sample", "failure_kind", "reward_components")
    }
    assert verification["usersim_result"] is None
    axes = verification["verifier_data"]["normalized_axis_scores"]
    assert {f"quality.{axis}": score for axis, score in axes.items()}.items() <= result["reward_components"].items()
    assert verification["verifier_data"]["scorer_name"] == "tool_use"


def test_components_have_the_same_flags_everywhere(results: dict[str, dict[str, Any]]) -> None:
    flags = {
        "participants_completed",
        "conversation_status",
        "scorer_applied",
        "scorer_pass",
        "trajectory_evaluator_applied",
        "assistant_quality",
        "quality.helpfulness",
        "quality.accuracy",
        "quality.coherence",
    }
    for probe, result in results.items():
        assert flags <= result["reward_components"].keys(), probe
        assert all(isinstance(value, float) for value in result["reward_components"].values()), probe


@pytest.mark.parametrize("probe", TOOL_PROBES)
def test_tools_are_run_by_the_simulation(results: dict[str, dict[str, Any]], probe: str) -> None:
    result = results[probe]
    messages = result["usersim_result"]["conversation_messages"]
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    outputs = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert calls
    assert calls == outputs
    evidence = next(each["state_after"] for each in reversed(result["invocations"]) if each["state_after"])
    assert [call["tool_call_id"] for call in evidence["executed_tool_calls"]] == calls


def test_the_model_that_plays_tools_stands_among_the_invocations_in_order(results: dict[str, dict[str, Any]]) -> None:
    invocations = results["tool_calling"]["invocations"]
    assert [each["sequence"] for each in invocations] == list(range(len(invocations)))
    roles = [each["role"] for each in invocations]
    first = roles.index("tool_simulation")
    assert roles[first - 1] == "assistant"
    assert roles[first + 1] == "assistant"
    assert set(roles) == {"user", "assistant", "judge", "summary", "tool_simulation"}


def test_invocations_keep_whole_requests_and_responses(results: dict[str, dict[str, Any]]) -> None:
    for each in results["general_open_ended"]["invocations"]:
        assert each["request"]["input"]
        assert each["response"]["object"] == "response"
        assert each["seconds"] > 0


def test_observations_belong_to_agents_and_to_their_own_activation(results: dict[str, dict[str, Any]]) -> None:
    for each in results["tool_calling"]["invocations"]:
        if each["role"] not in ("user", "assistant"):
            assert each["observations"] is None
            continue
        (record,) = each["observations"]["records"]
        assert record["kind"] == "agent_invocation"
        assert record["model_calls"][0]["response_id"] == each["response"]["id"]


def test_the_end_is_marked_on_the_last_words(results: dict[str, dict[str, Any]]) -> None:
    invocations = results["general_open_ended"]["invocations"]
    assistant = [each for each in invocations if each["role"] == "assistant"]
    assert [each["state_after"] is not None for each in assistant] == [False] * (len(assistant) - 1) + [True]
    reasons = [each["termination_reason"] for each in invocations if each["termination_reason"]]
    assert reasons == ["usersim_completed"]


def test_a_user_that_is_finished_ends_the_conversation_early() -> None:
    result = House(user=lambda _: "Thanks, that is all I needed.").result(row_of("general_open_ended", max_turns=3))
    assert result["usersim_result"]["simulation_outcome"]["early_stop"] is True
    assert result["gymkit"]["termination_reason"] == "usersim_early_stop"
    assert result["gymkit"]["steps"] == 1


def test_parameters_of_a_role_lie_underneath_the_request() -> None:
    row = row_of("tool_calling")
    row["role_request_params"] = {
        "assistant": {"temperature": 0.25, "tools": [], "max_output_tokens": 77},
        "judge": {"temperature": 0.5},
        "tool_simulation": {"temperature": 0.75},
    }
    by_role: dict[str, list[dict[str, Any]]] = {}
    for each in House().result(row)["invocations"]:
        by_role.setdefault(each["role"], []).append(each["request"])
    assert {request["temperature"] for request in by_role["assistant"]} == {0.25}
    assert by_role["assistant"][0]["tools"], "what the episode offers wins over the base"
    assert {request["temperature"] for request in by_role["judge"]} == {0.5}
    assert {request["temperature"] for request in by_role["tool_simulation"]} == {0.75}
    assert "temperature" not in by_role["user"][0]


@pytest.mark.parametrize(("locale", "probe"), [("ja_JP", "sov_ai_facts"), ("de_DE", "general_educational")])
def test_other_locales(locale: str, probe: str) -> None:
    result = House().result(row_of(probe, locale=locale))
    assert result["mask_sample"] is False
    assert result["usersim_result"]["locale"] == locale


def test_placeholder_content_is_warned_of() -> None:
    outcome = House().result(row_of("safety_agentic"))["usersim_result"]["simulation_outcome"]
    assert outcome["status"] == "completed_with_warnings"
    assert [each["kind"] for each in outcome["warnings"]] == ["used_placeholder_agentic_action"]


def test_calls_above_the_limit_are_answered_so_that_the_transcript_stays_valid() -> None:
    from gymkit.testing.agent import answer, call

    seen: list[dict[str, Any]] = []

    def greedy(params: dict[str, Any]) -> Any:
        seen.append(params)
        if params.get("tools") and not any(item.get("type") == "function_call" for item in params["input"]):
            return [call("kb_search", f"call_{number}", query="loan") for number in range(10)]
        return [answer("That is all I found.")]

    result = House(assistant=greedy).result(row_of("financial_services", max_turns=1))
    messages = result["usersim_result"]["conversation_messages"]
    outputs = {each["tool_call_id"]: each["content"] for each in messages if each["role"] == "tool"}
    assert sorted(outputs) == sorted(f"call_{number}" for number in range(10))
    assert "limit of tool calls" in outputs["call_8"]
    asked = [item["call_id"] for item in seen[-1]["input"] if item.get("type") == "function_call"]
    told = [item["call_id"] for item in seen[-1]["input"] if item.get("type") == "function_call_output"]
    assert asked == told


def test_an_assistant_that_nobody_can_name_fails_only_where_it_matters() -> None:
    house = House(names={"assistant": "nobody-knows-9000"})
    failure = house.failure(row_of("identity_disclosure"))
    assert failure["terminal"] is True
    assert failure["stage"] == "agent"
    assert "cannot infer who made assistant model 'nobody-knows-9000'" in failure["failure_reason"]
    assert House(names={"assistant": "nobody-knows-9000"}).result(row_of("general_open_ended"))["reward"] == 1.0


def test_the_scripted_support_can_be_severe() -> None:
    result = House(support=scripted.support(2)).result(row_of("general_open_ended"))
    assert result["reward"] == pytest.approx(0.4)
