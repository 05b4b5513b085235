"""Replies from dialect to dialect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymkit.wire import completions, messages
from gymkit.wire.dialects.dropped import Dropped
from gymkit.wire.dialects.reasoning import in_tags, split_tags
from gymkit.wire.dialects.reply_from_chat import reply_from_chat
from gymkit.wire.dialects.reply_from_messages import reply_from_messages
from gymkit.wire.dialects.reply_to_chat import reply_to_chat
from gymkit.wire.dialects.reply_to_messages import reply_to_messages
from gymkit.wire.responses import check_response
from tests.wire import builders
from tests.wire.dialects import strategies

Json = dict[str, Any]


def completion(message: Json, finish: str = "stop", **more: Any) -> Json:
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", **message},
        **more.pop("choice", {}),
    }
    return {"id": "c", "object": "chat.completion", "created": 7, "model": "m", "choices": [choice], **more}


def reply(*blocks: Json, stop: str = "end_turn", **more: Any) -> Json:
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(blocks)}
    return {**body, "stop_reason": stop, "stop_sequence": None, **more}


def paths(dropped: list[Dropped]) -> list[str]:
    return [drop.path for drop in dropped]


@settings(max_examples=40, deadline=None)
@given(strategies.completions())
def test_a_completion_comes_back_as_it_was(given_completion: Json) -> None:
    completions.check_completion(given_completion)
    response, dropped = reply_from_chat(given_completion, {})
    check_response(response)
    back = reply_to_chat(response)
    assert {**back.value, "id": "chatcmpl-1"} == given_completion
    assert (dropped, back.dropped) == ([], [])


@settings(max_examples=40, deadline=None)
@given(strategies.messages_replies())
def test_a_messages_reply_comes_back_as_it_was(given_reply: Json) -> None:
    messages.check_reply(given_reply)
    response, dropped = reply_from_messages(given_reply, {})
    check_response(response)
    back = reply_to_messages(response)
    assert (back.value, dropped, back.dropped) == (given_reply, [], [])


@settings(max_examples=40, deadline=None)
@given(strategies.completions())
def test_any_completion_becomes_a_valid_messages_reply(given_completion: Json) -> None:
    response = reply_from_chat(given_completion, {}).value
    made = reply_to_messages(response).value
    messages.check_reply(made)
    assert made["id"] == response["id"]


@settings(max_examples=40, deadline=None)
@given(st.lists(strategies.items, max_size=5))
def test_any_trajectory_becomes_a_valid_reply_and_what_a_model_did_not_say_is_reported(items: list[Json]) -> None:
    output = [{"type": "message", **item} for item in items if item.get("type") != "item_reference"]
    response = builders.response(*output)
    check_response(response)
    foreign = [
        f"output[{index}]"
        for index, item in enumerate(output)
        if item["type"] not in ("reasoning", "message", "function_call")
        or (item["type"] == "message" and item["role"] != "assistant")
    ]
    for convert, check in ((reply_to_chat, completions.check_completion), (reply_to_messages, messages.check_reply)):
        made, dropped = convert(response)
        check(made)
        assert set(foreign) <= set(paths(dropped))


@pytest.mark.parametrize(
    ("finish", "status", "reason", "stop"),
    [
        ("stop", "completed", None, "end_turn"),
        ("length", "incomplete", "max_output_tokens", "max_tokens"),
        ("content_filter", "incomplete", "content_filter", "refusal"),
    ],
)
def test_how_a_reply_ended_is_said_in_each_dialect(finish: str, status: str, reason: str | None, stop: str) -> None:
    response = reply_from_chat(completion({"content": "x"}, finish), {}).value
    assert response["status"] == status
    assert (response["incomplete_details"] or {}).get("reason") == reason
    assert reply_to_messages(response).value["stop_reason"] == stop
    assert reply_to_chat(response).value["choices"][0]["finish_reason"] == finish
    back = reply_from_messages(reply({"type": "text", "text": "x"}, stop=stop), {}).value
    assert back["incomplete_details"] == response["incomplete_details"]


def test_an_unknown_ending_is_incomplete_and_reported() -> None:
    response, dropped = reply_from_chat(completion({"content": "x"}, "abort"), {})
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": None})
    assert "abort" in dropped[0].reason
    made, dropped = reply_to_chat(response)
    assert (made["choices"][0]["finish_reason"], paths(dropped)) == ("stop", ["incomplete_details.reason"])
    response, dropped = reply_from_messages(reply(stop="pause_turn"), {})
    assert (response["status"], paths(dropped)) == ("incomplete", ["stop_reason"])


def test_calls_end_a_reply_with_tool_use() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    response = reply_from_chat(completion({"content": None, "tool_calls": [call]}, "tool_calls"), {}).value
    made = reply_to_messages(response).value
    assert made["stop_reason"] == "tool_use"
    assert made["content"] == [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]


@settings(max_examples=40, deadline=None)
@given(strategies.texts, strategies.texts)
def test_tags_part_a_reply_into_reasoning_and_text(thought: str, text: str) -> None:
    assert split_tags(in_tags(thought) + text) == (thought, text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("plain", (None, "plain")),
        ("<think>a</think>b", ("a", "b")),
        ("\n<think>\na\n</think>\n\nb", ("\na\n", "\n\nb")),
        ("opened by the template</think>b", ("opened by the template", "b")),
        ("<think>cut short", ("cut short", "")),
        ("say <think>x</think>", (None, "say <think>x</think>")),
    ],
)
def test_only_reasoning_at_the_beginning_counts(text: str, parts: tuple[str | None, str]) -> None:
    assert split_tags(text) == parts


def test_reasoning_is_read_from_either_field_or_from_tags() -> None:
    for message in ({"reasoning_content": "hm", "content": "x"}, {"reasoning": "hm", "content": "x"}):
        thought, answer = reply_from_chat(completion(message), {}).value["output"]
        assert (thought["summary"][0]["text"], answer["content"][0]["text"]) == ("hm", "x")
    tagged = completion({"content": "<think>hm</think>x"})
    thought, answer = reply_from_chat(tagged, {}, think_tags=True).value["output"]
    assert (thought["summary"][0]["text"], answer["content"][0]["text"]) == ("hm", "x")
    [answer] = reply_from_chat(tagged, {}).value["output"]
    assert answer["content"][0]["text"] == "<think>hm</think>x"


def test_a_response_echoes_what_was_asked() -> None:
    tool = {"type": "function", "name": "f", "parameters": {}}
    asked = {"input": "x", "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False}
    response = reply_from_chat(completion({"content": "x"}), asked).value
    assert response.items() >= {name: asked[name] for name in ("tools", "tool_choice", "parallel_tool_calls")}.items()


def test_a_cache_is_counted_within_the_input_or_apart() -> None:
    usage = {"input_tokens": 2, "output_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5}
    response = reply_from_messages(reply(usage=usage), {}).value
    assert response["usage"] == {
        "input_tokens": 17,
        "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": None},
        "total_tokens": 20,
    }
    assert reply_to_messages(response).value["usage"] == usage
    assert reply_to_chat(response).value["usage"]["prompt_tokens_details"] == {
        "cached_tokens": 10,
        "cache_write_tokens": 5,
    }


def test_a_partial_usage_is_unknown_and_reported() -> None:
    response, dropped = reply_from_chat(completion({"content": "x"}, usage={"prompt_tokens": 4}), {})
    assert "usage" not in response
    assert paths(dropped) == ["usage"]
    made, dropped = reply_to_messages(response)
    assert made["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert paths(dropped) == ["usage"]


def test_counts_without_a_place_are_reported_unless_zero() -> None:
    details = {"audio_tokens": 0, "accepted_prediction_tokens": 4}
    usage = {"prompt_tokens": 1, "completion_tokens": 5, "completion_tokens_details": details}
    response, dropped = reply_from_chat(completion({"content": "x"}, usage=usage), {})
    assert response["usage"]["total_tokens"] == 6
    assert paths(dropped) == ["usage.completion_tokens_details.accepted_prediction_tokens"]


def test_further_choices_and_logprobs_of_calls_are_reported() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    token = {"token": "x", "logprob": -1.0}
    body = completion({"tool_calls": [call]}, choice={"logprobs": {"content": [token]}})
    body["choices"].append(body["choices"][0])
    _, dropped = reply_from_chat(body, {})
    assert set(paths(dropped)) == {"choices[1]", "choices[0].logprobs.content"}


def test_tokens_of_an_empty_reply_are_reported() -> None:
    tokens = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.1]}
    response, dropped = reply_from_chat(completion({"content": "", **tokens}), {})
    assert response["output"] == []
    assert paths(dropped) == ["choices[0].message.generation_token_ids"]


def test_a_refusal_is_a_part_a_field_or_a_text() -> None:
    response = reply_from_chat(completion({"content": None, "refusal": "no"}), {}).value
    assert response["output"][0]["content"] == [{"type": "refusal", "refusal": "no"}]
    made, dropped = reply_to_messages(response)
    assert made["content"] == [{"type": "text", "text": "no"}]
    assert "output[0].content[0].refusal" in paths(dropped)
