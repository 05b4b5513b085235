"""Requests from dialect to dialect: canonical ones come back as they were, any other one arrives valid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from gymkit.wire import chat, messages
from gymkit.wire.dialects.dropped import Dropped
from gymkit.wire.dialects.messages_to_chat import messages_to_chat
from gymkit.wire.dialects.request_from_chat import request_from_chat
from gymkit.wire.dialects.request_from_messages import request_from_messages
from gymkit.wire.dialects.request_to_chat import request_to_chat
from gymkit.wire.dialects.request_to_messages import request_to_messages
from gymkit.wire.responses import check_request
from tests.wire.dialects import strategies

Json = dict[str, Any]


def paths(dropped: list[Dropped]) -> list[str]:
    return [drop.path for drop in dropped]


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


@settings(max_examples=40, deadline=None)
@given(strategies.chat_requests())
def test_a_chat_request_comes_back_as_it_was(request: Json) -> None:
    chat.check_request(request)
    there = request_from_chat(request)
    check_request(there.value)
    back = request_to_chat(there.value)
    assert (back.value, there.dropped, back.dropped) == (request, [], [])


@settings(max_examples=40, deadline=None)
@given(strategies.messages_requests())
def test_a_messages_request_comes_back_as_it_was(request: Json) -> None:
    messages.check_request(request)
    there = request_from_messages(request)
    check_request(there.value)
    back = request_to_messages(there.value)
    assert (back.value, there.dropped, back.dropped) == (request, [], [])


@settings(max_examples=40, deadline=None)
@given(strategies.responses_requests())
def test_any_responses_request_becomes_a_valid_chat_request_that_stays_as_it_is(request: Json) -> None:
    check_request(request)
    there = request_to_chat(request)
    chat.check_request(there.value)
    params = request_from_chat(there.value).value
    check_request(params)
    again = request_to_chat(params)
    # Reasoning in tags, order between calls and text: what was reported the first time is settled then.
    assert again.value["messages"] == there.value["messages"] or there.dropped
    assert [drop for drop in again.dropped if not drop.path.startswith("input[")] == []


@settings(max_examples=40, deadline=None)
@given(strategies.responses_requests())
def test_any_responses_request_becomes_a_valid_messages_request_that_stays_as_it_is(request: Json) -> None:
    there = request_to_messages(request)
    messages.check_request(there.value)
    params = request_from_messages(there.value).value
    check_request(params)
    again = request_to_messages(params)  # from here on a tool's texts are one text
    third = request_to_messages(request_from_messages(again.value).value)
    assert (third.value, again.dropped, third.dropped) == (again.value, [], [])
    assert [turn["role"] for turn in again.value["messages"]] == [turn["role"] for turn in there.value["messages"]]


@settings(max_examples=40, deadline=None)
@given(strategies.messages_requests())
def test_a_messages_request_becomes_a_valid_chat_request(request: Json) -> None:
    request["stop_sequences"] = ["END"]
    params, made, dropped = messages_to_chat(request)
    check_request(params)
    chat.check_request(made)
    assert made["stop"] == ["END"]
    assert "stop_sequences" not in paths(dropped)


def test_a_turn_of_a_model_is_one_chat_message_and_several_items() -> None:
    items = [
        user("go"),
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": "I call two"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "g", "arguments": "{}", "namespace": "ns"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "message", "role": "assistant", "content": "done"},
    ]
    made = request_to_chat({"input": items}).value["messages"]
    assert [message["role"] for message in made] == ["user", "assistant", "tool", "tool", "assistant"]
    assert made[1]["reasoning_content"] == "hm"
    assert made[1]["content"] == "I call two"
    assert [call["function"]["name"] for call in made[1]["tool_calls"]] == ["f", "ns__g"]


def test_reasoning_goes_into_the_text_for_a_server_that_does_not_parse_it() -> None:
    items = [
        {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": "yes"},
    ]
    [message] = request_to_chat({"input": items}, think_tags=True).value["messages"]
    assert message == {"role": "assistant", "content": "<think>hm</think>yes"}
    [alone] = request_to_chat({"input": items[:1]}, think_tags=True).value["messages"]
    assert alone["content"] == "<think>hm</think>"


def test_text_after_a_call_stays_and_its_lost_position_is_reported() -> None:
    items = [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": "meanwhile"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ]
    made, dropped = request_to_chat({"input": items})
    assert [message["role"] for message in made["messages"]] == ["assistant", "tool"]
    assert made["messages"][0]["content"] == "meanwhile"
    assert paths(dropped) == ["input[1]"]


def test_two_answers_in_a_row_stay_two() -> None:
    items = [{"type": "message", "role": "assistant", "content": text} for text in ("a", "b")]
    made = request_to_chat({"input": items}).value["messages"]
    assert [message["content"] for message in made] == ["a", "b"]


def test_instructions_become_the_first_system_message() -> None:
    made = request_to_chat({"input": "hi", "instructions": "be kind"}).value
    assert made["messages"] == [{"role": "system", "content": "be kind"}, user("hi")]
    assert request_to_messages({"input": "hi", "instructions": "be kind"}).value["system"] == "be kind"


def test_system_blocks_become_the_instructions() -> None:
    blocks = [{"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "two"}]
    made, dropped = request_from_messages({"messages": [user("hi")], "max_tokens": 1, "system": blocks})
    assert made["instructions"] == "one\ntwo"
    assert paths(dropped) == ["system[0].cache_control"]


def test_a_tool_result_of_texts_is_joined_and_its_error_flag_reported() -> None:
    result = {
        "type": "tool_result",
        "tool_use_id": "a",
        "is_error": True,
        "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
    }
    made, dropped = request_from_messages({"messages": [user([result])], "max_tokens": 1})
    assert made["input"] == [{"type": "function_call_output", "call_id": "a", "output": "x\ny"}]
    assert paths(dropped) == ["messages[0].content[0].is_error"]


def test_thinking_keeps_its_signature_and_redacted_thinking_its_data() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "blob"},
        {"type": "text", "text": "ok"},
    ]
    made = request_from_messages({"messages": [{"role": "assistant", "content": blocks}], "max_tokens": 1}).value
    thought, hidden, _ = made["input"]
    assert (thought["summary"][0]["text"], thought["encrypted_content"]) == ("hm", "sig")
    assert (hidden["summary"], hidden["encrypted_content"]) == ([], "blob")


@pytest.mark.parametrize("arguments", ["not json", "[1]", '"text"'])
def test_arguments_that_are_no_object_are_reported_by_messages(arguments: str) -> None:
    item = {"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments}
    made, dropped = request_to_messages({"input": [item]})
    assert made["messages"][0]["content"][0]["input"] == {}
    assert paths(dropped) == ["input[0].arguments"]


def test_images_go_both_ways() -> None:
    parts = [{"type": "input_image", "image_url": "data:image/png;base64,QQ==", "detail": "high"}]
    made, dropped = request_to_chat({"input": [user(parts)]})
    assert made["messages"][0]["content"][0]["image_url"] == {"url": "data:image/png;base64,QQ==", "detail": "high"}
    assert dropped == []
    block, dropped = request_to_messages({"input": [user(parts)]})
    source = {"type": "base64", "media_type": "image/png", "data": "QQ=="}
    assert block["messages"][0]["content"] == [{"type": "image", "source": source}]
    assert paths(dropped) == ["input[0].content[0].detail"]


@pytest.mark.parametrize("url", ["data:image/bmp;base64,QQ==", "ftp://host/a.png", "data:nonsense"])
def test_an_image_that_messages_cannot_show_is_reported(url: str) -> None:
    made, dropped = request_to_messages(
        {"input": [user([{"type": "input_image", "image_url": url, "detail": "auto"}])]}
    )
    assert made["messages"] == []
    assert paths(dropped) == ["input[0].content[0]"]


def test_what_has_no_place_is_reported_with_where_it_stood() -> None:
    request = {
        "messages": [{**user("hi"), "name": "ann"}],
        "seed": 7,
        "stop": "END",
        "n": 2,
        "presence_penalty": 0,
        "chat_template_kwargs": {"x": 1},
    }
    made, dropped = request_from_chat(request)
    assert set(paths(dropped)) == {"messages[0].name", "seed", "stop", "n", "chat_template_kwargs"}
    assert {drop.kind for drop in dropped} == {"messages[].name", "seed", "stop", "n", "chat_template_kwargs"}
    assert made == {"input": [{"type": "message", **user("hi")}]}


def test_defaults_and_nulls_say_nothing_and_are_not_reported() -> None:
    nothing = {
        "background": False,
        "truncation": "disabled",
        "previous_response_id": None,
        "tools": [],
        "stream": False,
    }
    assert request_to_chat({"input": "hi", "tool_choice": "auto", "parallel_tool_calls": True, **nothing}).dropped == []


def test_token_fields_move_with_the_turn() -> None:
    tokens = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.1]}
    message = {"role": "assistant", "content": "a", "tool_calls": []}
    message["tool_calls"] = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    items = request_from_chat({"messages": [{**message, **tokens}]}).value["input"]
    assert "generation_token_ids" not in items[0]
    assert items[1].items() >= tokens.items()
    partial = {**message, "prompt_token_ids": [1]}
    assert "prompt_token_ids" not in request_from_chat({"messages": [partial]}).value["input"][1]
