"""What a harness does not tell, put together again from the calls of its model, whatever dialect it speaks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.evidence import Evidence
from gymkit.collect.rebuilt import Unresolved, rebuilt
from gymkit.collect.tokens import TokenRules, Tokens
from gymkit.errors import ConfigError, TooManyMasked
from gymkit.models.script import Script
from gymkit.models.scripted import ScriptedModel, ScriptedModelConfig
from gymkit.servers.capture import Capture, FileCapture, MemoryCapture
from gymkit.servers.route import Route
from gymkit.servers.token_files import TokenFiles
from gymkit.testing.agent import call
from gymkit.wire import codec

Row = dict[str, Any]
KEY = "3-1"
PLANNED: Row = {"_ng_task_index": 3, "_ng_rollout_index": 1}
PATHS = {"responses": "/v1/responses", "chat": "/v1/chat/completions", "messages": "/v1/messages"}
TOOL = {"type": "object", "properties": {"n": {"type": "integer"}}}


def said(dialect: str, *, answer: str | None = None, number: int = 1) -> list[Row]:
    """What a harness tells its model of a call ``c<number>`` that it made, and of what came back."""
    name, arguments = "look", f'{{"n":{number}}}'
    call_id = f"c{number}"
    asked: Row
    if dialect == "responses":
        asked = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
        return [asked, {"type": "function_call_output", "call_id": call_id, "output": answer}]
    if dialect == "chat":
        asked = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        told = {"role": "tool", "tool_call_id": call_id, "content": answer}
        return [{"role": "assistant", "content": None, "tool_calls": [asked]}, told]
    used = {"type": "tool_use", "id": call_id, "name": name, "input": {"n": number}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": answer}
    return [
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result, {"type": "text", "text": "go on"}]},
    ]


def request(dialect: str, conversation: list[Row]) -> Row:
    """A request of the dialect."""
    if dialect == "responses":
        return {
            "model": "m",
            "input": conversation,
            "tools": [{"type": "function", "name": "look", "parameters": TOOL}],
        }
    if dialect == "chat":
        tool = {"type": "function", "function": {"name": "look", "parameters": TOOL}}
        return {"model": "m", "messages": conversation, "tools": [tool]}
    return {"model": "m", "max_tokens": 9, "messages": conversation, "tools": [{"name": "look", "input_schema": TOOL}]}


def ask(capture: Capture, dialect: str, *conversations: list[Row], script: Any, training: bool = True) -> None:
    """Ask a model server, as a harness would."""

    async def talk() -> None:
        route = Route.to_app(
            "policy", ScriptedModel("policy", ScriptedModelConfig(), script=Script(script), capture=capture)
        )
        segment = "/training-token-capture" if training else ""
        for conversation in conversations:
            reply = await route.post(f"/ng-rollout/{KEY}{segment}{PATHS[dialect]}", request(dialect, conversation))
            assert reply.status in (200, 500), reply.body
        await route.aclose()

    asyncio.run(talk())


def merged(capture: Capture, row: Row | None = None, **rules: Any) -> Row:
    evidence = Evidence(capture, tokens=Tokens(TokenRules(**{"rebuild": True, **rules})))
    result: Row = {"reward": 1.0, "response": {"output": [message("all done")]}, **(row or {})}
    asyncio.run(evidence.add(KEY, PLANNED, result, 0.5))
    again: Row = codec.loads(codec.dumps(result))
    return again


def message(text: str, role: str = "assistant") -> Row:
    return {"type": "message", "role": role, "content": [{"type": "output_text", "text": text, "annotations": []}]}


USER = {"role": "user", "content": "look twice"}
SCRIPT = [call("look", "c1", n=1), call("look", "c2", n=2), "seen"]


def talk(dialect: str) -> list[list[Row]]:
    first, second = said(dialect, answer="a"), said(dialect, answer="b", number=2)
    return [[USER], [USER, *first], [USER, *first, *second]]


@pytest.fixture(params=["memory", "capture files", "token files", "both files"])
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Capture:
    match request.param:
        case "memory":
            return MemoryCapture()
        case "capture files":
            return FileCapture(tmp_path)
        case "token files":
            return TokenFiles(tmp_path)
    return TokenFiles(tmp_path / "tokens", FileCapture(tmp_path / "calls"))


@pytest.mark.parametrize("dialect", list(PATHS))
def test_a_conversation_is_put_together_from_its_calls(capture: Capture, dialect: str) -> None:
    ask(capture, dialect, *talk(dialect), script=SCRIPT)
    row = merged(capture)
    output = row["response"]["output"]
    assert [item["type"] for item in output] == [
        *("function_call", "function_call_output", "function_call", "function_call_output", "message")
    ]
    assert [item["output"] for item in output if item["type"] == "function_call_output"] == ["a", "b"]
    assert ["generation_token_ids" in item for item in output] == [True, False, True, False, True]
    assert bytes(output[-1]["generation_token_ids"]) == b"<assistant>seen\n"
    assert row["_ng_token_capture"] == {"calls": 3, "attached": 3, "rebuilt": True}
    assert "mask_sample" not in row
    assert ("ng_trajectory" in row) == capture.observed


def test_a_conversation_that_tells_all_stays_as_it_is(capture: Capture) -> None:
    ask(capture, "responses", [USER], script=["all done"])
    row = merged(capture)
    assert row["_ng_token_capture"] == {"calls": 1, "attached": 1}


def test_a_conversation_of_its_own_beside_is_the_policys_too(capture: Capture) -> None:
    ask(capture, "chat", [{"role": "user", "content": "a title?"}], [USER], script=["Title", "all seen"])
    output = merged(capture)["response"]["output"]
    assert [item["content"][0]["text"] for item in output] == ["Title", "all seen"]


def test_words_that_nobody_recorded_make_a_hole(capture: Capture) -> None:
    rewritten = [USER, {"role": "assistant", "content": "I was edited"}, {"role": "user", "content": "and?"}]
    ask(capture, "chat", [USER], rewritten, script=["first", "second"])
    row = merged(capture)
    assert (row["mask_sample"], row["failure_kind"]) == (True, "token_capture_incomplete")
    assert "call 2 of 2 goes on from words that no recorded call wrote" in row["failure_reason"]
    assert row["reward"] == 1.0
    assert row["response"]["output"] == [message("all done")]
    assert row["_ng_token_capture"]["attached"] == 0


def test_holes_may_be_allowed(capture: Capture) -> None:
    rewritten = [USER, {"role": "assistant", "content": "I was edited"}, {"role": "user", "content": "and?"}]
    ask(capture, "chat", [USER], rewritten, script=["first", "second"])
    assert merged(capture, loose=True)["_ng_token_capture"]["rebuilt"] is True


def test_words_of_the_task_need_no_record(capture: Capture) -> None:
    given = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two "}, USER]
    ask(capture, "chat", given, script=["said"])
    assert merged(capture)["mask_sample"] is True
    ask(capture, "chat", given, script=["said"])
    row = merged(capture, {"responses_create_params": {"input": given}})
    assert row["_ng_token_capture"]["rebuilt"] is True


def test_without_rebuilding_such_rows_are_masked_and_without_attaching_they_stay() -> None:
    for name, masked in (("rebuild", True), ("attach", None)):
        capture = MemoryCapture()
        ask(capture, "chat", *talk("chat"), script=SCRIPT)
        row = merged(capture, None, **{name: False})
        assert row.get("mask_sample") is masked
        assert row["response"]["output"] == [message("all done")]


def test_a_failed_call_is_no_part_of_it_and_failures_alone_are_masked() -> None:
    from gymkit.testing.model import Fault

    capture = MemoryCapture()
    ask(capture, "chat", [USER], [USER], script=[Fault(500, b"no"), "seen"])
    assert merged(capture)["_ng_token_capture"] == {"calls": 2, "attached": 1, "rebuilt": True}
    ask(capture, "chat", [USER], script=[Fault(500, b"no")])
    assert "no model call went well" in merged(capture)["failure_reason"]


def test_a_record_with_a_hole_masks_the_row(tmp_path: Path) -> None:
    capture = TokenFiles(tmp_path)
    ask(capture, "chat", *talk("chat"), script=SCRIPT)
    (tmp_path / f"{KEY}.tokens.incomplete").touch()
    assert "a model call is not on record" in merged(capture)["failure_reason"]
    capture.clear(KEY)
    assert list(tmp_path.iterdir()) == []


def test_calls_that_are_not_for_training_leave_no_tokens_in_files(tmp_path: Path) -> None:
    capture = TokenFiles(tmp_path)
    ask(capture, "chat", [USER], script=["x"], training=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match=r"token_id_capture\.dir must be an absolute path"):
        TokenFiles("tokens")


def test_the_files_hold_what_a_trainer_needs(tmp_path: Path) -> None:
    ask(TokenFiles(tmp_path), "messages", *talk("messages"), script=SCRIPT)
    lines = [codec.loads(line) for line in (tmp_path / f"{KEY}.tokens.jsonl").read_bytes().splitlines()]
    assert [line["follows"] for line in lines] == [None, ["c1"], ["c2"]]
    last = lines[-1]
    assert (last["schema_version"], last["rollout_id"], last["token_item_index"]) == (1, KEY, 0)
    assert len(last["generation_token_ids"]) == len(last["generation_log_probs"])
    assert last["output_items"][0]["content"][0]["text"] == "seen"
    assert last["response_id"]
    assert last["model"]


def test_what_is_known_of_the_environments_calls_goes_over() -> None:
    capture = MemoryCapture()
    prefixed = [call("mcp__environment__look", "c1", n=1), call("other", "c2", n=2), "seen"]
    ask(capture, "responses", *talk("responses"), script=prefixed)
    asked = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"n": 1}'}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "a"}
    known = {"item": 1, "step": 1, "error": None, "seconds": 0.5}
    lost = {"item": 3, "step": 1, "error": None, "seconds": 0.5}
    own = {"steps": 2, "calls": [known, lost]}
    unseen = [{**asked, "call_id": "call_2", "arguments": '{"n": 7}'}, {**output, "call_id": "call_2"}]
    row = merged(capture, {"response": {"output": [asked, output, *unseen, message("printed")]}, "gymkit": own})
    assert row["gymkit"] == {"steps": 3, "calls": [{**known, "item": 1, "step": 1}]}


def test_records_without_tokens_cannot_be_put_together() -> None:
    with pytest.raises(Unresolved, match="call 1 of 1 came without token ids"):
        rebuilt([{"output_items": [message("x")]}], None, loose=True)
    with pytest.raises(Unresolved, match="call 1 of 1"):
        rebuilt([{}], None, loose=True)


def test_too_many_masked_rows_end_the_run_after_enough_of_them() -> None:
    tokens = Tokens(TokenRules(rebuild=False, max_mask_fraction=0.5, min_samples=3))
    capture = MemoryCapture()
    for number, text in enumerate(["all done", "else", "else"]):
        ask(capture, "chat", [USER], script=[text])
        row: Row = {"reward": 1.0, "response": {"output": [message("all done")]}}
        tokens.check()
        asyncio.run(Evidence(capture, tokens=tokens).add(KEY, PLANNED, row, 0.5))
        assert bool(row.get("mask_sample")) == bool(number)
    with pytest.raises(TooManyMasked, match=r"2 of 3 rollouts .* more than max_mask_fraction=0.5"):
        tokens.check()
