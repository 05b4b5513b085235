"""Scenarios of one's own: no extra, the same outcome, masks and artifacts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.errors import ConfigError, InputError, ServerError
from gymkit.servers.fault import Fault
from gymkit.testing import usersim as scripted
from gymkit.testing.agent import answer, call, outputs
from gymkit.usersim.runtime import ContractError, Spoken
from gymkit.usersim.scenario import DONE, Scenario, Talk
from gymkit.usersim.scenario_runtime import ScenarioRuntime

Params = dict[str, Any]


def slots(day: str) -> list[str]:
    """Free times of a day."""
    return ["10:00", "15:30"] if day == "Friday" else []


def book(day: str, time: str) -> dict[str, bool]:
    """Book a time."""
    if day != "Friday":
        raise LookupError("closed")
    return {"ok": True}


def helpful(params: Params) -> Any:
    match len(outputs(params)):
        case 0:
            return [call("slots", "c1", day="Friday")]
        case 1:
            return [call("book", "c2", day="Friday", time="10:00")]
    return [answer("You have Friday at ten.")]


def turns(*lines: str) -> Callable[[Params], Any]:
    """A user that says ``lines`` one after the other."""

    def brain(params: Params) -> Any:
        said = sum(item.get("role") == "assistant" for item in params["input"])
        return lines[min(said, len(lines) - 1)]

    return brain


HURRIED = turns("An appointment on Friday, please.", f"Perfect, thanks. {DONE}")


def booked(talk: Talk) -> bool:
    return talk.called("book") == [{"day": "Friday", "time": "10:00"}]


def scenario(**fields: Any) -> Scenario:
    given: dict[str, Any] = {"persona": "Maya, in a hurry", "goal": "an appointment", "tools": [slots, book]}
    return Scenario(**{**given, "checks": [booked], "max_turns": 3, **fields})


def play(assistant: Any = helpful, user: Any = HURRIED, support: Any = None, **fields: Any) -> dict[str, Any]:
    episode = gk.UserSimEpisode(assistant=assistant, user=user, support=support, runtime="scenario")
    return episode.play(scenario(**fields), quiet=True).row


def test_a_goal_that_is_reached_is_rewarded_and_the_mark_is_taken_off() -> None:
    row = play()
    assert (row["reward"], row["mask_sample"], row["failure_kind"]) == (1.0, False, None)
    said = [(each["role"], each.get("content")) for each in row["usersim_result"]["conversation_messages"]]
    assert said[-1] == ("user", "Perfect, thanks.")
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant", "tool", "assistant", "user"]
    assert row["usersim_result"]["simulation_outcome"]["early_stop"] is True
    assert row["gymkit"]["termination_reason"] == "usersim_early_stop"
    assert [each["role"] for each in row["invocations"]] == ["user", "assistant", "assistant", "assistant", "user"]


def test_a_check_that_fails_is_a_measured_zero() -> None:
    row = play(assistant=lambda _: "I cannot book anything.")
    assert (row["reward"], row["mask_sample"], row["failure_kind"]) == (0.0, False, None)
    data = row["verification"]["verifier_data"]
    assert (data["scorer_name"], data["scorer_state"], data["scorer_status_proposal"]) == ("checks", "ok", False)
    assert data["scorer_result"]["scores"] == {"booked_0": 0.0}


def test_a_check_that_breaks_says_nothing_of_the_assistant() -> None:
    row = play(checks=[lambda talk: 1 / 0])
    assert (row["reward"], row["mask_sample"], row["failure_kind"]) == (0.0, True, "verifier_error")
    assert "ZeroDivisionError" in row["failure_reason"]


def test_a_check_that_cannot_tell_is_inconclusive() -> None:
    row = play(checks={"taste": lambda talk: None})
    assert (row["mask_sample"], row["failure_kind"]) == (True, "usersim:scorer_inconclusive")


def test_scores_of_checks_are_averaged_and_async_checks_are_awaited() -> None:
    async def half(talk: Talk) -> float:
        await asyncio.sleep(0)
        return 0.5

    assert play(checks=[booked, half])["reward"] == 0.75


def test_a_score_beyond_its_scale_is_an_error_of_the_check() -> None:
    assert play(checks=[lambda talk: 3.0])["failure_kind"] == "verifier_error"


def test_with_a_judge_quality_is_the_reward_and_checks_are_the_gate() -> None:
    assert play(support=scripted.support(4))["reward"] == pytest.approx(0.8)
    assert play(support=scripted.support(4), assistant=lambda _: "no")["reward"] == 0.0
    row = play(support=lambda _: Fault(400))
    assert (row["mask_sample"], row["failure_kind"]) == (True, "verifier_error")


def test_a_judge_that_leaves_its_scale_is_masked() -> None:
    bad = '{"helpfulness": {"reasoning": "", "score": 11}, "accuracy": {"reasoning": "", "score": 5}, "coherence": {}}'
    row = play(support=lambda _: bad)
    assert (row["reward"], row["mask_sample"], row["failure_kind"]) == (0.0, True, "judge_failed")


def test_the_assistants_mistake_and_the_users_silence() -> None:
    row = play(assistant=lambda _: [call("nothing_like_it", "c")])
    assert (row["mask_sample"], row["failure_kind"]) == (False, "usersim:assistant_activation_error")
    row = play(user=lambda _: "")
    assert (row["mask_sample"], row["failure_kind"]) == (True, "usersim:user_query_gate_exhausted")
    row = play(user=turns("Friday please", ""))
    assert (row["mask_sample"], row["failure_kind"]) == (True, "usersim:user_followup_gate_exhausted")


def test_a_user_that_is_out_of_order_has_no_row() -> None:
    with pytest.raises(ServerError, match="the simulated user failed"):
        play(user=lambda _: Fault(503))


def test_tool_errors_are_outputs() -> None:
    def clumsy(params: Params) -> Any:
        said = outputs(params)
        steps: list[Any] = [
            [call("book", "c1", day="Monday", time="9")],
            [call("book", "c2", day=3)],
            [{**call("book", "c3"), "arguments": "{"}],
        ]
        return steps[len(said)] if len(said) < len(steps) else [answer("It did not work.")]

    row = play(assistant=clumsy, checks=[lambda talk: True])
    tools = [each["content"] for each in row["usersim_result"]["conversation_messages"] if each["role"] == "tool"]
    assert "LookupError: closed" in tools[0]
    assert '"status":422' in tools[1]
    assert "not JSON" in tools[2]


def test_more_calls_than_allowed_are_answered_and_the_assistant_has_to_speak() -> None:
    def greedy(params: Params) -> Any:
        if params.get("tools"):
            return [call("slots", f"c{number}", day="Friday") for number in range(10)]
        return [answer("That is all.")]

    row = play(assistant=greedy, checks=[lambda talk: len(talk.calls) == 8], max_turns=1)
    assert row["reward"] == 1.0
    messages = row["usersim_result"]["conversation_messages"]
    assert sum(each["role"] == "tool" for each in messages) == 10


def test_a_stop_function_and_the_last_turn() -> None:
    row = play(stop=booked, user=turns("Friday please", "and more"))
    assert row["usersim_result"]["simulation_outcome"]["early_stop"] is True
    row = play(user=turns("Friday please", "and more"), max_turns=2)
    assert row["usersim_result"]["simulation_outcome"]["n_turns"] == 2
    assert row["gymkit"]["termination_reason"] == "usersim_completed"


def test_the_opening_is_said_word_for_word_and_costs_no_call() -> None:
    row = play(opening="Friday. Please.", max_turns=1)
    assert row["usersim_result"]["conversation_messages"][0] == {"role": "user", "content": "Friday. Please."}
    assert [each["role"] for each in row["invocations"]] == ["assistant"] * 3


def test_the_user_is_told_its_part_and_hears_no_tools() -> None:
    heard: list[Params] = []

    def listening(params: Params) -> Any:
        heard.append(params)
        return HURRIED(params)

    play(user=listening, facts={"order number": "A-17"}, language="German", instructions="Be brief.")
    system = heard[0]["input"][0]["content"]
    assert "A-17" in system
    assert "in German" in system
    assert [item["role"] for item in heard[1]["input"]] == ["system", "assistant", "user"]
    assert "10:00" not in str(heard[1]["input"][1:])


@pytest.mark.parametrize("name", ["counter", "weather"])
def test_an_environments_tools_work_and_its_verifier_is_a_check(name: str) -> None:
    env = gk.Env(name)
    task = env.rows[0]

    def solving(params: Params) -> Any:
        done = outputs(params)
        if name == "weather":
            return [call("get_weather", "c1", city="Paris")] if not done else [answer("It is cold.")]
        if not done:
            return [call("increment_counter", "c1", count=task["expected_count"] - task["initial_count"])]
        return [call("get_counter_value", "c2")] if len(done) == 1 else [answer("done")]

    own = Scenario(persona="x", goal="it", opening="please", tools=env, max_turns=1)
    row = gk.UserSimEpisode(assistant=solving, user=HURRIED, runtime="scenario").play(own, quiet=True).row
    assert "environment" in row["usersim_result"]["checks"]
    assert row["usersim_result"]["checks"]["environment"]["error"] is None
    if name == "counter":
        assert row["reward"] == 1.0


def test_rollouts_have_the_frames_and_can_be_run_again(tmp_path: Path) -> None:
    moods = iter(["How can I help you today?", "An appointment on Friday, please.", f"Thanks. {DONE}"] * 9)
    episode = gk.UserSimEpisode(assistant=helpful, user=lambda _: next(moods), runtime="scenario")
    run = episode.rollouts([scenario(max_turns=1)], output=tmp_path / "r.jsonl", progress=False)
    assert list(run.rewards["status"]) == ["masked"]
    assert list(run.masks["failure_kind"]) == ["usersim:user_fault"]
    broken = run.audit[run.audit["status"] == "broken"]
    assert list(broken["check"]) == ["role"]
    assert broken["quote"].iloc[0] == "How can I help you"
    again = run.rerun(run.rewards["status"] == "masked")
    assert list(again.rewards["status"]) == ["scored"]
    assert list(again.rewards["reward"]) == [1.0]
    assert list(again.outcomes["scorer"]) == ["checks"]
    assert list(again.conversations["role"]) == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert list(again.conversations["tool"].dropna()) == ["slots", "book"]
    assert set(again.invocations["role"]) == {"user", "assistant"}


def test_a_scenario_is_the_same_row_each_time_and_another_for_another_goal() -> None:
    assert scenario().row() == scenario().row()
    assert scenario().row()["task_id"] != scenario(goal="a cancellation").row()["task_id"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"goal": " "}, "goal is empty"), ({"max_turns": 0}, "at least 1")],
)
def test_a_scenario_that_makes_no_sense(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        scenario(**fields)


def test_what_an_episode_refuses() -> None:
    with pytest.raises(ConfigError, match="need support"):
        gk.UserSimEpisode(assistant=helpful, user=HURRIED)
    with pytest.raises(ConfigError, match="nothing would judge it"):
        play(checks=[])
    own = gk.UserSimEpisode(assistant=helpful, user=HURRIED, runtime="scenario")
    with pytest.raises(ConfigError, match="a tool is a Python function"):
        own.play(scenario(tools=["book"]), quiet=True)
    with pytest.raises(ConfigError, match="plays Scenario objects"):
        own.rollouts([{"task_id": "1", "resolved_row": {}}], progress=False)
    with pytest.raises(InputError, match="one task"):
        own.play([scenario(), scenario(goal="b")], quiet=True)


def test_a_remote_agent_service_can_be_the_assistant() -> None:
    from gymkit.servers.hosting import serve
    from gymkit.testing.agent import ScriptedAgent

    service = ScriptedAgent(helpful)
    with serve(service) as hosted:
        episode = gk.UserSimEpisode(assistant=gk.RemoteAgent(hosted.url), user=HURRIED, runtime="scenario")
        row = episode.play(scenario(), quiet=True).row
    assert row["reward"] == 1.0
    assert len(service.received) == 3


def test_play_says_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    episode = gk.UserSimEpisode(assistant=helpful, user=HURRIED, runtime="scenario")
    dialogue = episode.play(scenario())
    told = capsys.readouterr().out
    assert "     user: An appointment on Friday, please." in told
    assert 'assistant: → book({"day":"Friday","time":"10:00"})' in told
    assert str(dialogue).endswith("[reward 1]")
    assert "Friday at ten" in dialogue._repr_html_()


def test_the_runtime_keeps_its_contract() -> None:
    own = scenario(opening="hi")
    runtime = ScenarioRuntime(own, own.row()["resolved_row"], own.toolbox())

    async def go() -> None:
        first = await runtime.advance()
        assert first is not None
        with pytest.raises(ContractError):
            await runtime.advance(Spoken("activation-000099", {"content": "x"}))
        said = Spoken(first.id, {"role": "assistant", "content": "hello"})
        second = await runtime.advance(said)
        assert await runtime.advance(said) == second, "the same words again bring the same answer"
        with pytest.raises(ContractError, match="differently"):
            await runtime.advance(Spoken(first.id, {"role": "assistant", "content": "other"}))
        with pytest.raises(ContractError, match="was not run"):
            await runtime.tool_result("c")
        assert (await runtime.evidence())["transcript"][0]["content"] == "hi"
        await runtime.close()
        await runtime.close()

    asyncio.run(go())


def test_parameters_go_by_role() -> None:
    seen: dict[str, Any] = {}

    def asked(role: str, brain: Any) -> Any:
        def heard(params: Params) -> Any:
            seen[role] = params.get("temperature")
            return brain(params)

        return heard

    row = play(asked("assistant", helpful), asked("user", HURRIED), params={"user": {"temperature": 0.25}})
    assert seen == {"user": 0.25, "assistant": None}
    assert row["reward"] == 1.0
    plain, warm = scenario().row(), scenario(params={"user": {"temperature": 0.25}}).row()
    assert "role_request_params" not in plain
    assert plain["task_id"] != warm["task_id"]
    with pytest.raises(InputError, match="temperature"):
        episode = gk.UserSimEpisode(assistant=helpful, user=HURRIED, runtime="scenario")
        episode.rollouts([scenario(params={"user": {"temperature": "hot"}})], progress=False)
