"""The merge: what is on record, what the agent says it saw, and a gap for whatever does not fit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.evidence import Evidence
from gymkit.servers.call import ModelCall, record_of
from gymkit.servers.capture import Capture, Captured, FileCapture, MemoryCapture
from gymkit.wire import codec
from gymkit.wire.trajectory import check_trajectory

Row = dict[str, Any]
PLANNED: Row = {"_ng_task_index": 3, "_ng_rollout_index": 1, "task_id": "three"}
KEY = "3-1"
TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2, 3], "generation_log_probs": [-0.1, -0.2]}


def message(text: str) -> Row:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def function_call(call_id: str) -> Row:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}


def reply(name: str, *output: Row, **more: Any) -> Row:
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    return {"id": name, "model": "m", "status": "completed", "output": list(output), "usage": usage, **more}


def recorded(
    capture: Capture, response: Row | bytes, *, status: int = 200, training: bool = False, **facts: Any
) -> str:
    call = ModelCall(facts.pop("dialect", "responses"), rollout=KEY, training=training)
    for name, value in facts.items():
        setattr(call, name, value)
    request = codec.dumps({"input": [{"role": "user", "content": "what?"}]})
    body = response if isinstance(response, bytes) else codec.dumps(response)
    asyncio.run(capture.append(record_of(call, "policy", status, request, body)))
    return call.id


def named(response_id: str) -> Row:
    return {"model_ref": {"type": "responses_api_models", "name": "policy"}, "response_id": response_id}


def observed(*references: Row, name: str = "root", conversation: Any = ({"role": "user", "content": "what?"},)) -> Row:
    record = {"kind": "agent_invocation", "invocation_id": name, "status": "completed"}
    return {"source": "x", "records": [{**record, "model_calls": list(references), "conversation": list(conversation)}]}


def merged(capture: Capture, row: Row | None = None, **options: Any) -> Row:
    evidence, result = Evidence(capture, **options), {"reward": 1.0, "response": {"output": []}, **(row or {})}
    asyncio.run(evidence.add(KEY, PLANNED, result, 0.5))
    again: Row = codec.loads(codec.dumps(result))
    if "ng_trajectory" in again:
        check_trajectory(again["ng_trajectory"])
    return again


def codes(row: Row) -> list[str]:
    return [gap["code"] for gap in row["ng_trajectory"]["gaps"]]


@pytest.fixture(params=["memory", "files"])
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Capture:
    return MemoryCapture() if request.param == "memory" else FileCapture(tmp_path / "captures")


def test_calls_are_summed_joined_and_told_turn_by_turn(capture: Capture) -> None:
    recorded(capture, reply("r1", function_call("c1")))
    recorded(capture, reply("r2", message("two")))
    row = merged(capture, {"ng_agent_observations": observed(named("r1"), named("r2"))})
    told, trajectory = row["ng_model_call_capture"], row["ng_trajectory"]
    assert told["rollout_id"] == trajectory["rollout_id"] == KEY
    assert trajectory["task_id"] == "three"
    assert told["metrics"]["num_calls"] == 2
    assert (told["metrics"]["tokens_in"], told["metrics"]["tokens_reasoning"]) == (10, None)
    assert told["calls"][0]["tool_calls"] == [{"call_id": "c1", "name": "look", "arguments": "{}"}]
    assert [call["call_index"] for call in told["calls"]] == [0, 1]
    assert not {"request", "response", "latency_ms"} & set(told["calls"][0])
    assert [(turn["turn_no"], turn["answer"], turn["step_count"]) for turn in trajectory["turns"]] == [
        (1, None, 1),
        (2, "two", 1),
    ]
    assert trajectory["turns"][0]["question"] == "what?"
    assert trajectory["model_calls"][1]["response"] == reply("r2", message("two"))
    assert trajectory["gaps"] == []
    perf = row["ng_perf"]
    assert (perf["num_turns"], perf["token_observability_coverage"], perf["completion_tokens"]) == (2, 1.0, 4)
    assert perf["total_latency_ms"] == 500.0
    assert "reasoning_tokens" not in perf


def test_memory_is_given_back_and_files_stay(capture: Capture) -> None:
    recorded(capture, reply("r1", message("x")))
    merged(capture)
    assert bool(capture.read(KEY).calls) == isinstance(capture, FileCapture)


def test_records_of_an_earlier_rollout_are_gone_before_it_begins(capture: Capture) -> None:
    recorded(capture, reply("r1", message("x")))
    assert Evidence(capture).begin(PLANNED) == KEY
    assert capture.read(KEY) == Captured([], False)
    assert Evidence(capture).begin({"_ng_rollout_id": "no/path"}) is None


def test_a_reference_is_never_guessed(capture: Capture) -> None:
    recorded(capture, reply("twice", message("a")))
    recorded(capture, reply("twice", message("b")))
    once = recorded(capture, reply("once", message("c")))
    wanted = observed(named("twice"), named("nowhere"), {"model_call_id": once}, named("once"))
    row = merged(capture, {"ng_agent_observations": wanted})
    assert codes(row) == [f"model_call_reference_{problem}" for problem in ("ambiguous", "unmatched", "conflict")]
    [invocation] = row["ng_trajectory"]["invocations"]
    assert len(invocation["model_calls"]) == 4
    assert [turn["answer"] for turn in row["ng_trajectory"]["turns"]] == ["c"]
    assert len(row["ng_trajectory"]["model_calls"]) == 3


def test_a_call_may_name_its_invocation_itself(capture: Capture) -> None:
    recorded(capture, reply("r1", message("mine")), client_session_id="root")
    recorded(capture, reply("r2", message("the judge's")))
    row = merged(capture, {"ng_agent_observations": observed()})
    assert [turn["answer"] for turn in row["ng_trajectory"]["turns"]] == ["mine"]
    assert codes(row) == []


def test_calls_that_nobody_claims_are_said(capture: Capture) -> None:
    recorded(capture, reply("r1", message("x")))
    row = merged(capture, {"ng_agent_observations": observed()})
    assert codes(row) == ["model_call_ownership_unavailable", "turns_unavailable"]
    assert row["ng_perf"]["token_observability_coverage"] == 0.0


def test_what_is_not_on_record_is_said(capture: Capture) -> None:
    row = merged(capture, {"ng_agent_observations": observed(named("r1"), conversation=())})
    assert codes(row) == [
        "model_call_capture_no_records",
        "model_call_reference_unavailable",
        "model_calls_unavailable",
        "turns_unavailable",
        "conversation_unavailable",
    ]
    assert row["ng_model_call_capture"]["metrics"]["tokens_in"] is None


def test_a_rollout_without_models_has_no_evidence_unless_it_was_expected() -> None:
    assert set(merged(MemoryCapture(), expected=False)) == {"reward", "response"}
    assert codes(merged(MemoryCapture()))[0] == "model_call_capture_no_records"


def test_a_hole_in_the_record_is_said(tmp_path: Path) -> None:
    capture = FileCapture(tmp_path)
    recorded(capture, reply("r1", message("x")))
    (tmp_path / f"{KEY}.capture.incomplete").touch()
    assert "model_call_capture_incomplete" in codes(merged(capture))


def test_a_failed_call_is_a_call_and_no_turn(capture: Capture) -> None:
    recorded(capture, b'{"error": "busy"}', status=429, client_session_id="root", error_category="rate_limit")
    row = merged(capture, {"ng_agent_observations": observed()})
    [call] = row["ng_model_call_capture"]["calls"]
    assert (call["status_code"], call["error_category"], call["response_id"]) == (429, "rate_limit", None)
    assert codes(row) == ["turns_unavailable"]


def test_each_dialect_is_read_in_its_own_words(capture: Capture) -> None:
    chat = {
        "id": "c",
        "model": "m",
        "choices": [{"message": {"content": "hi", "reasoning_content": "hm"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 3}},
    }
    messages = {
        "id": "a",
        "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {"a": 1}}, {"type": "text", "text": "yo"}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 4, "output_tokens": 1, "cache_read_input_tokens": 6},
    }
    recorded(capture, chat, dialect="chat", client_session_id="root")
    recorded(capture, messages, dialect="messages", client_session_id="root")
    row = merged(capture, {"ng_agent_observations": observed()})
    first, second = row["ng_model_call_capture"]["calls"]
    assert (first["finish_reason"], first["reasoning_content"], first["cache_hit"]) == ("length", "hm", True)
    assert (second["finish_reason"], second["tokens_in"], second["tokens_total"]) == ("tool_use", 10, 11)
    assert [turn["answer"] for turn in row["ng_trajectory"]["turns"]] == ["hi", "yo"]


@pytest.mark.parametrize("body", [b"[]", b"3", b'{"output": 3}', b'{"output": [3], "usage": "no"}'])
def test_a_reply_of_another_shape_says_nothing_and_costs_nothing(capture: Capture, body: bytes) -> None:
    recorded(capture, body)
    row = merged(capture)
    assert row["reward"] == 1.0
    assert row["ng_model_call_capture"]["metrics"]["num_calls"] == 1


def test_an_error_that_is_no_json_is_kept_as_text(capture: Capture) -> None:
    recorded(capture, b"{broken", status=502)
    assert merged(capture)["ng_trajectory"]["model_calls"][0]["response"] == "{broken"


def test_odd_text_in_bodies_keeps_the_line_whole(capture: Capture) -> None:
    recorded(capture, b'{\n "id": "r1", "output": [],\r\n "note": "\xed\xa0\x80 \xe2\x80\xa8"}')
    row = merged(capture)
    assert b"\n" not in codec.dumps(row)
    assert row["ng_trajectory"]["model_calls"][0]["response"]["note"] == "\ud800 \u2028"


def test_observations_and_trajectories_of_another_shape_are_gaps(capture: Capture) -> None:
    recorded(capture, reply("r1", message("x")))
    row = merged(capture, {"ng_agent_observations": {"records": []}, "ng_trajectory": {"task_id": 1}})
    assert {"agent_observations_invalid", "producer_trajectory_invalid"} <= set(codes(row))
    other = {"schema_version": "1.0", "task_id": "three", "rollout_id": "another"}
    assert "producer_trajectory_identity_mismatch" in codes(merged(capture, {"ng_trajectory": other}))


def test_a_producers_own_turns_are_kept_even_if_there_are_none(capture: Capture) -> None:
    recorded(capture, reply("r1", message("x")), client_session_id="a")
    own = {"schema_version": "1.0", "task_id": "three", "rollout_id": KEY, "turns": []}
    own["invocations"] = observed(name="a")["records"]
    row = merged(capture, {"ng_trajectory": own})
    assert row["ng_trajectory"]["turns"] == []
    assert len(row["ng_trajectory"]["invocations"][0]["model_calls"]) == 1


def test_rows_of_a_call_that_failed_get_no_evidence_and_leave_none_behind() -> None:
    capture = MemoryCapture()
    recorded(capture, reply("r1", message("x")))
    row = merged(capture, {"_ng_failure_class": "agent_run_error"})
    assert "ng_trajectory" not in row
    assert repr(capture) == "<MemoryCapture 0 rollouts, 0 bytes>"


class Broken(MemoryCapture):
    async def collect(self, rollout: str) -> Captured:
        raise OSError("the disk is gone")


def test_a_capture_that_cannot_be_read_costs_no_row() -> None:
    row = merged(Broken())
    assert row["reward"] == 1.0
    assert "model_call_capture_unreadable" in codes(row)


def tokens_row(*output: Row) -> Row:
    return {"response": {"output": list(output)}}


def test_recorded_tokens_go_back_on_the_items(capture: Capture) -> None:
    recorded(capture, reply("r1", function_call("c1")), training=True, tokens=TOKENS)
    recorded(capture, reply("r2", message("two")), training=True, tokens=TOKENS)
    output = {"type": "function_call_output", "call_id": "c1", "output": "1"}
    row = merged(capture, tokens_row(function_call("c1"), output, message("two")))
    assert [item.get("generation_token_ids") for item in row["response"]["output"]] == [[2, 3], None, [2, 3]]
    assert row["_ng_token_capture"] == {"calls": 2, "attached": 2}
    assert "mask_sample" not in row


@pytest.mark.parametrize(
    ("output", "tokens", "reason"),
    [
        ([message("edited")], TOKENS, "item 0 of the response is not what call 1 of 1 said"),
        ([], TOKENS, "what call 1 of 1 said is not in the response"),
        ([message("two"), message("more")], TOKENS, "item 1 of the response is in no recorded reply"),
        ([message("two")], None, "came without token ids"),
    ],
)
def test_tokens_without_a_place_mask_the_row_with_the_reason(
    capture: Capture, output: list[Row], tokens: Row | None, reason: str
) -> None:
    recorded(capture, reply("r2", message("two")), training=True, tokens=tokens)
    row = merged(capture, tokens_row(*output))
    assert row["mask_sample"] is True
    assert row["reward"] == 1.0
    assert reason in row["failure_reason"]
    assert all("generation_token_ids" not in item for item in row["response"]["output"])


def test_a_mask_that_is_there_keeps_its_reason(capture: Capture) -> None:
    recorded(capture, reply("r2", message("two")), training=True, tokens=TOKENS)
    row = merged(capture, {"mask_sample": True, "failure_reason": "the judge failed"})
    assert row["failure_reason"] == "the judge failed"
