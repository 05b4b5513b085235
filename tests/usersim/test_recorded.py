"""Model calls of episodes with simulated users: on the rows as those of any rollout, whoever was asked."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.sdk.rollouts import Rollouts
from gymkit.servers.capture import FileCapture
from gymkit.servers.hosting import serve
from gymkit.testing import usersim as scripted
from gymkit.testing.agent import ScriptedAgent, answer
from gymkit.usersim.scenario import DONE, Scenario

Params = dict[str, Any]
USER, ASSISTANT, SUPPORT = "nemo_user_sim_user_model", "nemo_user_sim_assistant_model", "support_model"


def user(params: Params) -> str:
    answered = any(item.get("role") == "assistant" for item in params["input"])
    return f"Thank you. {DONE}" if answered else "When are you open?"


def run(
    tmp_path: Path, *, assistant: Any = lambda _: "From nine to five.", support: Any = None, **options: Any
) -> Rollouts:
    episode = gk.UserSimEpisode(assistant=assistant, user=user, support=support, runtime="scenario")
    scenario = Scenario(persona="Maya", goal="opening hours", max_turns=3, checks=[lambda talk: True])
    return episode.rollouts([scenario], output=tmp_path / "r.jsonl", progress=False, **options)


def test_the_calls_of_both_sides_are_on_the_row_and_the_turns_are_the_assistants(tmp_path: Path) -> None:
    rollouts = run(tmp_path)
    calls = rollouts.model_calls
    assert list(calls["server"]) == [USER, ASSISTANT, USER]
    assert list(calls["invocation_id"].fillna("nobody")) == ["nobody", "root", "nobody"]
    assert list(rollouts.turns["question"]) == ["When are you open?"]
    assert list(rollouts.turns["answer"]) == ["From nine to five."]
    assert len(rollouts.gaps) == 0
    row = rollouts.record(0)
    assert row["ng_model_call_capture"]["calls"][1]["response_id"] == row["invocations"][1]["response"]["id"]
    assert row["ng_perf"]["num_turns"] == 1, "what the user took is not the assistant's"


def test_what_the_verifier_asks_is_recorded_too(tmp_path: Path) -> None:
    rollouts = run(tmp_path, support=scripted.support())
    assert Counter(rollouts.model_calls["server"]) == {USER: 2, ASSISTANT: 1, SUPPORT: 1}


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    rollouts = run(tmp_path, capture=False)
    assert len(rollouts.model_calls) == 0
    assert not [key for key in rollouts.record(0) if key.startswith("ng_")]


def test_records_may_be_kept_as_files(tmp_path: Path) -> None:
    rollouts = run(tmp_path, capture=FileCapture(tmp_path / "calls"))
    assert len(rollouts.model_calls) == 3
    (kept,) = (tmp_path / "calls").glob("*.capture.jsonl")
    assert kept.read_bytes().count(b"\n") == 3


def test_a_service_elsewhere_asks_models_that_nobody_here_sees_and_the_row_says_so(tmp_path: Path) -> None:
    with serve(ScriptedAgent(lambda _: [answer("From nine to five.")])) as hosted:
        rollouts = run(tmp_path, assistant=hosted.url)
    assert list(rollouts.model_calls["server"]) == [USER, USER]
    assert rollouts.model_calls["invocation_id"].isna().all()
    assert "model_calls_unavailable" in set(rollouts.gaps["code"])


def test_every_role_of_a_probe_is_recorded(tmp_path: Path) -> None:
    pytest.importorskip("usersim")
    from tests.usersim.house import row_of

    episode = gk.UserSimEpisode(
        assistant=scripted.assistant(), user=scripted.user, support=scripted.support(), assistant_name="gpt-4o"
    )
    rollouts = episode.rollouts([row_of("tool_calling")], output=tmp_path / "r.jsonl", progress=False)
    roles = Counter(each["role"] for each in rollouts.record(0)["invocations"])
    helped = roles["judge"] + roles["summary"] + roles["tool_simulation"]
    expected = {USER: roles["user"], ASSISTANT: roles["assistant"], SUPPORT: helped + 2}  # its scorer and its evaluator
    assert Counter(rollouts.model_calls["server"]) == expected
    assert rollouts.model_calls["invocation_id"].notna().sum() == roles["assistant"] == len(rollouts.turns)
    assert len(rollouts.gaps) == 0
