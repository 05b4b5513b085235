"""``openai_model`` in front of a service on loopback."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gymkit.models import load
from gymkit.models.openai import OpenAIModel, OpenAIModelConfig
from gymkit.servers.capture import MemoryCapture
from gymkit.testing.agent import Fault, answer, respond
from gymkit.wire import codec
from tests.models.doubles import HELLO, SECRET, Json, ask, completion, service


def model(url: str, capture: MemoryCapture | None = None, **settings: Any) -> OpenAIModel:
    given = {"openai_base_url": url, "openai_api_key": SECRET, "openai_model": "upstream", "max_http_attempts": 1}
    return OpenAIModel("policy", OpenAIModelConfig.model_validate({**given, **settings}), capture=capture)


def test_a_request_goes_through_with_our_model_over_what_lies_under_it() -> None:
    with service(respond([answer("hi")])) as (url, double):
        server = model(url, extra_body={"temperature": 0.1, "top_p": 0.5})
        reply = ask(server, "/v1/responses", {"input": "x", "model": "theirs", "temperature": 0.9})
    assert reply.json_object()["output"][0]["content"][0]["text"] == "hi"
    assert double.received[0].path == "/v1/responses"
    assert double.received[0].params == {"input": "x", "model": "upstream", "temperature": 0.9, "top_p": 0.5}


def test_chat_goes_through_to_chat_and_messages_by_way_of_responses() -> None:
    with service(completion(), respond([answer("hi")])) as (url, double):
        server = model(url)
        chat = ask(server, "/v1/chat/completions", {"messages": HELLO, "seed": 7, "n": 1})
        message = ask(server, "/v1/messages", {"messages": HELLO, "max_tokens": 9})
    assert chat.json_object() == completion()
    assert message.json_object()["content"] == [{"type": "text", "text": "hi"}]
    assert [received.path for received in double.received] == ["/v1/chat/completions", "/v1/responses"]
    assert double.received[0].params["seed"] == 7
    assert double.received[1].params["max_output_tokens"] == 9


def test_token_fields_and_unwanted_reasoning_do_not_reach_the_service() -> None:
    tokens = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.1]}
    items: list[Json] = [{"type": "reasoning", "id": "rs", "summary": []}, {**answer("a"), **tokens}, *HELLO]
    with service(respond([])) as (url, double):
        ask(model(url), "/v1/responses", {"input": items})
        ask(model(url, drop_input_reasoning_items=True), "/v1/responses", {"input": items})
    assert [len(received.params["input"]) for received in double.received] == [3, 2]
    assert "token_ids" not in str(double.received[0].params)


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_a_reply_of_another_shape_is_a_502(path: str) -> None:
    with service({"output": "nonsense"}) as (url, _):
        reply = ask(model(url), path, {"input": "x"} if path == "/v1/responses" else {"messages": HELLO})
    assert reply.status == 502
    assert reply.json_object()["kind"] == "invalid_response"


def test_the_services_status_reaches_the_caller_and_the_record_and_the_key_neither() -> None:
    capture = MemoryCapture()
    fault = Fault(429, codec.dumps({"error": {"message": f"{SECRET} spent", "code": "insufficient_quota"}}))
    with service(fault) as (url, double):
        server = model(url, capture)
        first = ask(server, "/ng-rollout/r1/v1/responses", {"input": "x"})
        second = ask(server, "/ng-rollout/r1/v1/chat/completions", {"messages": HELLO})
    assert (first.status, second.status, len(double.received)) == (429, 429, 1)
    assert first.json_object()["error"]["code"] == "insufficient_quota"
    assert (b"x-should-retry", b"false") in first.headers
    records = capture.read("r1").calls
    assert [record["upstream_attempted"] for record in records] == [True, False]
    assert [record["upstream_status_code"] for record in records] == [429, None]
    assert [record["error_category"] for record in records] == ["rate_limit", "rate_limit"]
    assert SECRET not in f"{first} {second} {records} {server} {server.config} {server.config.model_dump_json()}"


def test_a_bound_on_patience_is_passed_on() -> None:
    with service(Fault(503, b"{}", {"retry-after": "120"})) as (url, _):
        reply = ask(model(url), "/v1/responses", {"input": "x"})
    assert (b"retry-after", b"120") in reply.headers


def test_mistakes_in_the_settings_do_not_repeat_a_secret() -> None:
    good = {"openai_base_url": "http://h/v1", "openai_api_key": SECRET, "openai_model": "m"}
    for bad in ({"openai_base_url": f"http://u:{SECRET}@h"}, {"openai_api_key": 7}, {"max_http_attempts": 0}):
        with pytest.raises(ValidationError) as raised:
            OpenAIModelConfig.model_validate({**good, **bad})
        assert SECRET not in str(raised.value)


def test_the_catalogue_gives_class_and_settings() -> None:
    server, config = load("openai_model")
    assert (server, config) == (OpenAIModel, OpenAIModelConfig)
