"""Rollouts as ATIF trajectories: the format's rules hold for whatever an agent sent, and nothing is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from gymkit.wire import codec
from gymkit.wire.atif import trajectory_of
from tests.frames.samples import call, message, nemo, ours, output

TEXT = st.text("ab\ud800\u2028<", max_size=4)
IDS = st.sampled_from(["c1", "c2", "c3"])
REASONING = TEXT.map(
    lambda text: {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": text}]}
)
ITEM = st.one_of(
    st.builds(call, IDS, st.just("f"), st.sampled_from(['{"x": 1}', "[1]", "{", ""])),
    st.builds(output, IDS, TEXT | st.lists(st.integers(), max_size=2)),
    st.builds(message, TEXT, st.sampled_from(["assistant", "user"])),
    REASONING,
    st.just({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
)


@given(st.lists(ITEM, max_size=12))
def test_the_rules_of_the_format_hold_for_any_items(items: list[dict[str, Any]]) -> None:
    found = json.loads(codec.dumps(trajectory_of(ours(0, items=items), session="s")))
    steps = found["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    assert found["final_metrics"]["total_steps"] == len(steps)
    for step in steps:
        ids = {each["tool_call_id"] for each in step.get("tool_calls", ())}
        results = step.get("observation", {"results": []})["results"]
        assert {result["source_call_id"] for result in results if "source_call_id" in result} <= ids
        if step["source"] != "agent":
            assert not step.keys() & {"tool_calls", "reasoning_content", "metrics", "model_name"}
        assert isinstance(step["message"], str)


@example([message("", "assistant"), message("<", "assistant")])
@given(st.lists(ITEM, max_size=12))
def test_nothing_is_lost(items: list[dict[str, Any]]) -> None:
    steps = trajectory_of(ours(0, items=items), session="s")["steps"]
    kinds = [item["type"] for item in items]
    assert sum(len(step.get("tool_calls", ())) for step in steps) == kinds.count("function_call")
    results = [result for step in steps for result in step.get("observation", {"results": []})["results"]]
    assert len(results) == kinds.count("function_call_output")
    other = [item for step in steps for item in step.get("extra", {}).get("items", ())]
    assert len(other) == kinds.count("web_search_call")
    said = [step["message"] for step in steps]
    for item in items:
        if item["type"] == "message":
            assert item["content"][0]["text"] in said


def test_one_step_for_what_the_agent_did_at_once() -> None:
    items = [call("a"), call("b"), output("a"), output("b"), message("done")]
    steps = trajectory_of(nemo(0, items=items), session="s")["steps"]
    assert [step["source"] for step in steps] == ["user", "agent", "agent"]
    assert [each["tool_call_id"] for each in steps[1]["tool_calls"]] == ["a", "b"]
    assert len(steps[1]["observation"]["results"]) == 2


def test_what_the_document_says_of_the_run() -> None:
    row = ours(3, rollout=1, mask_sample=True, failure_kind="judge_failed", reward_components={"x": 1.0})
    row["responses_create_params"] |= {"instructions": "Be brief.", "input": "add 1"}
    found = trajectory_of(row, session="counter")
    assert found["trajectory_id"] == "counter:3:1"
    assert found["agent"]["name"] == "remote_agent"
    assert len(found["agent"]["tool_definitions"]) == 2
    assert [step["message"] for step in found["steps"][:2]] == ["Be brief.", "add 1"]
    assert found["steps"][0]["timestamp"].startswith("2026-01-01T00:00:00")
    told = found["extra"]["gymkit"]
    assert (told["reward"], told["mask_sample"], told["failure_kind"]) == (1.0, True, "judge_failed")


def test_a_row_with_hardly_anything() -> None:
    found = trajectory_of({"reward": 1.0}, session="s")
    assert found["steps"] == [{"step_id": 1, "source": "agent", "message": ""}]
    assert found["final_metrics"] == {"total_steps": 1}
