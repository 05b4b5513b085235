"""``vllm_model`` in front of a service on loopback that answers as vLLM does."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gymkit.models.chat import ChatModel, ChatModelConfig
from gymkit.servers.capture import MemoryCapture
from gymkit.testing.agent import Fault
from gymkit.wire import codec
from gymkit.wire.responses import check_response
from tests.models.doubles import HELLO, SECRET, Json, ask, completion, service

THOUGHT = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
SAID = {"type": "message", "role": "assistant", "content": "yes"}
ENTRIES = [{"token": "h", "logprob": -0.5, "bytes": None}, {"token": "i", "logprob": -0.25, "bytes": None}]
TOKENS = {"prompt_token_ids": [1, 2, 3], "generation_token_ids": [4, 5], "generation_log_probs": [-0.5, -0.25]}


def model(url: str | list[str], capture: MemoryCapture | None = None, **settings: Any) -> ChatModel:
    given = {
        "base_url": url,
        "api_key": SECRET,
        "model": "upstream",
        "return_token_id_information": False,
        "uses_reasoning_parser": True,
        "max_http_attempts": 1,
    }
    return ChatModel("policy", ChatModelConfig.model_validate({**given, **settings}), capture=capture)


def vllm(**choice: Any) -> Json:
    said = {"token_ids": [4, 5], "logprobs": {"content": ENTRIES}, **choice}
    return completion(choice=said, prompt_token_ids=[1, 2, 3])


def test_responses_is_answered_by_way_of_chat() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    said = {"content": None, "reasoning": "hm", "tool_calls": calls}
    with service(completion(said, "tool_calls")) as (url, double):
        asked = {"input": "x", "instructions": "be kind", "max_output_tokens": 9, "temperature": 0.5}
        response = ask(model(url), "/v1/responses", asked).json_object()
    check_response(response)
    assert [item["type"] for item in response["output"]] == ["reasoning", "function_call"]
    assert response["usage"]["total_tokens"] == 5
    received = double.received[0]
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {SECRET}"
    assert received.params == {
        "model": "upstream",
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "x"}],
        "max_tokens": 9,
        "temperature": 0.5,
    }


def test_messages_keeps_its_stop_sequences() -> None:
    with service(completion()) as (url, double):
        body = {"messages": HELLO, "max_tokens": 9, "stop_sequences": ["END"], "system": "be kind"}
        reply = ask(model(url), "/v1/messages", body).json_object()
    assert reply["content"] == [{"type": "text", "text": "hi"}]
    assert double.received[0].params["stop"] == ["END"]
    assert [message["role"] for message in double.received[0].params["messages"]] == ["system", "user"]


def test_chat_goes_through_with_all_its_fields() -> None:
    body = {"messages": HELLO, "seed": 3, "stop": "END", "n": 2, "logprobs": True, "chat_template_kwargs": {"a": 1}}
    given = completion(choice={"logprobs": {"content": ENTRIES}})
    with service(given) as (url, double):
        reply = ask(model(url, chat_template_kwargs={"a": 0, "b": 2}), "/v1/chat/completions", body)
    assert reply.json_object() == given
    assert double.received[0].params == {**body, "model": "upstream", "chat_template_kwargs": {"a": 1, "b": 2}}


def test_what_lies_under_and_over_a_request() -> None:
    settings = {"extra_body": {"top_k": 5, "temperature": 0.1}, "sampling_overrides": {"top_p": 1.0}}
    with service(completion()) as (url, double):
        ask(model(url, **settings), "/v1/responses", {"input": "x", "temperature": 0.7, "top_p": 0.2})
    sent = double.received[0].params
    assert (sent["top_k"], sent["temperature"], sent["top_p"]) == (5, 0.7, 1.0)


def test_metadata_may_hold_parameters_for_the_service() -> None:
    metadata = {"extra_body": '{"top_k": 7}', "chat_template_kwargs": '{"enable_thinking": false}', "note": "kept"}
    with service(completion()) as (url, double):
        ask(model(url), "/v1/responses", {"input": "x", "metadata": metadata})
        refused = ask(model(url), "/v1/responses", {"input": "x", "metadata": {"extra_body": "{"}})
    sent = double.received[0].params
    assert (sent["top_k"], sent["chat_template_kwargs"]) == (7, {"enable_thinking": False})
    assert sent["metadata"] == {"note": "kept"}
    assert refused.status == 422
    assert "metadata.extra_body" in refused.text


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, {"content": "yes", "reasoning_content": "hm", "reasoning": "hm"}),
        ({"reasoning_field": "reasoning"}, {"content": "yes", "reasoning": "hm"}),
        ({"uses_interleaved_reasoning": False}, {"content": "yes"}),
        ({"uses_reasoning_parser": False}, {"content": "<think>hm</think>yes"}),
    ],
)
def test_how_earlier_reasoning_is_sent_back(settings: Json, sent: Json) -> None:
    with service(completion()) as (url, double):
        ask(model(url, **settings), "/v1/responses", {"input": [*HELLO, THOUGHT, SAID, *HELLO]})
    assert double.received[0].params["messages"][1] == {"role": "assistant", **sent}


def test_reasoning_is_looked_for_in_the_text_where_nobody_parsed_it() -> None:
    with service(completion({"content": "<think>hm</think>yes"})) as (url, _):
        output = ask(model(url, uses_reasoning_parser=False), "/v1/responses", {"input": "x"}).json_object()["output"]
    assert output[0]["summary"][0]["text"] == "hm"
    assert output[1]["content"][0]["text"] == "yes"


def test_a_developer_may_become_a_system() -> None:
    with service(completion()) as (url, double):
        for flag in (False, True):
            server = model(url, replace_developer_role_with_system=flag)
            ask(server, "/v1/responses", {"input": [{"role": "developer", "content": "x"}]})
    assert [received.params["messages"][0]["role"] for received in double.received] == ["developer", "system"]


def test_token_ids_as_vllm_returns_them_stand_on_the_last_item() -> None:
    with service(vllm()) as (url, double):
        server = model(url, return_token_id_information=True)
        response = ask(server, "/v1/responses", {"input": "x"}).json_object()
        chat = ask(server, "/v1/chat/completions", {"messages": HELLO}).json_object()
    assert response["output"][-1].items() >= TOKENS.items()
    assert "logprobs" not in response["output"][-1]["content"][0]
    assert "prompt_token_ids" not in response
    assert chat["choices"][0]["message"].items() >= TOKENS.items()
    assert not {"token_ids", "logprobs"} & chat["choices"][0].keys()
    assert all(received.params["return_token_ids"] and received.params["logprobs"] for received in double.received)


def test_logprobs_that_a_client_asked_for_stay() -> None:
    with service(vllm()) as (url, _):
        server = model(url, return_token_id_information=True)
        chat = ask(server, "/v1/chat/completions", {"messages": HELLO, "logprobs": True}).json_object()
    assert chat["choices"][0]["logprobs"] == {"content": ENTRIES}


def test_token_ids_may_stand_on_the_services_own_message() -> None:
    with service(completion(TOKENS)) as (url, _):
        response = ask(model(url, return_token_id_information=True), "/v1/responses", {"input": "x"}).json_object()
    assert response["output"][-1].items() >= TOKENS.items()


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (completion(), "no token ids"),
        (vllm(token_ids=[4]), "1 token ids and 2 logprobs"),
        (vllm(logprobs=None), "2 token ids and 0 logprobs"),
        (vllm(token_ids=None, logprobs={"content": [{**ENTRIES[1], "id": 5}]}), "wrote 2 tokens and names 1"),
    ],
)
def test_missing_token_ids_are_an_error_where_they_are_promised_and_a_note_where_they_are_captured(
    reply: Json, words: str
) -> None:
    capture = MemoryCapture()
    with service(reply) as (url, _):
        promised = ask(model(url, return_token_id_information=True), "/v1/responses", {"input": "x"})
        path = "/ng-rollout/r1/training-token-capture/v1/responses"
        captured = ask(model(url, capture), path, {"input": "x"})
    assert (promised.status, promised.json_object()["kind"]) == (502, "no_token_ids")
    assert words in promised.text
    assert captured.status == 200
    [record] = capture.read("r1").calls
    assert "tokens" not in record
    assert words in record["dropped"][0]["reason"]


def test_token_ids_for_training_are_in_the_record_alone() -> None:
    capture = MemoryCapture()
    with service(vllm()) as (url, double):
        reply = ask(model(url, capture), "/ng-rollout/r1/training-token-capture/v1/responses", {"input": "x"})
        ask(model(url, capture), "/ng-rollout/r1/v1/responses", {"input": "x"})
    assert b"token_ids" not in reply.body
    first, second = capture.read("r1").calls
    assert {name: first["tokens"][name] for name in TOKENS} == TOKENS
    assert "tokens" not in second
    assert "return_token_ids" not in double.received[1].params


def test_token_fields_of_the_history_do_not_reach_the_service() -> None:
    with service(completion()) as (url, double):
        ask(model(url), "/v1/responses", {"input": [*HELLO, {**SAID, **TOKENS}, *HELLO]})
        ask(model(url), "/v1/chat/completions", {"messages": [{"role": "assistant", "content": "x", **TOKENS}]})
    assert all("token_ids" not in str(received.params) for received in double.received)


def overflow() -> Fault:
    error = {"message": "This model's maximum context length is 8 tokens.", "type": "BadRequestError", "code": 400}
    return Fault(400, codec.dumps(error))


def test_a_request_longer_than_the_context_gets_an_empty_reply_that_was_cut_short() -> None:
    capture = MemoryCapture()
    with service(overflow()) as (url, _):
        server = model(url, capture, return_token_id_information=True)
        response = ask(server, "/ng-rollout/r1/v1/responses", {"input": "x"}).json_object()
        chat = ask(server, "/ng-rollout/r1/v1/chat/completions", {"messages": HELLO}).json_object()
        message = ask(server, "/ng-rollout/r1/v1/messages", {"messages": HELLO, "max_tokens": 1}).json_object()
    check_response(response)
    assert (response["output"], response["status"]) == ([], "incomplete")
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert "usage" not in response
    assert chat["choices"][0]["finish_reason"] == "length"
    assert message["stop_reason"] == "max_tokens"
    for record in capture.read("r1").calls:
        assert (record["response_source"], record["local_response_reason"]) == ("local", "context_length_exceeded")
        assert (record["status_code"], record["upstream_status_code"]) == (200, 400)


def test_or_an_error_where_that_is_wanted() -> None:
    with service(overflow()) as (url, _):
        reply = ask(model(url, propagate_context_overflow_errors=True), "/v1/responses", {"input": "x"})
    assert (reply.status, reply.json_object()["kind"]) == (400, "context_length_exceeded")


def test_a_reply_of_another_shape_is_a_502() -> None:
    with service({"choices": []}) as (url, _):
        reply = ask(model(url), "/v1/responses", {"input": "x"})
    assert (reply.status, reply.json_object()["kind"]) == (502, "invalid_response")


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"base_url": []}, "base_url"),
        ({"base_url": ["http://h", "ftp://h"]}, "base_url"),
        ({"use_completions_api": True}, "use_completions_api"),
        ({"endpoint_file": "/tmp/x"}, "endpoint_file"),
        ({"return_token_id_information": None}, "return_token_id_information"),
        ({"reasoning_feild": "both"}, "reasoning_feild"),
    ],
)
def test_settings_that_cannot_be_used_are_named(bad: Json, named: str) -> None:
    given = {
        "base_url": "http://h/v1",
        "api_key": SECRET,
        "model": "m",
        "return_token_id_information": False,
        "uses_reasoning_parser": True,
    }
    ChatModelConfig.model_validate({**given, "endpoint_file": None, "endpoint_connection_retries": 8})
    with pytest.raises(ValidationError, match=named) as raised:
        ChatModelConfig.model_validate({**given, **bad})
    assert SECRET not in str(raised.value)
