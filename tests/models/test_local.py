"""The model on this machine: real text, real token ids. Skipped where its packages are not installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import MissingExtra
from gymkit.models.local import LocalModel, LocalModelConfig, _placed, require
from gymkit.servers.capture import MemoryCapture
from gymkit.wire import codec
from tests.models.doubles import HELLO, Json, ask

try:
    require()
except MissingExtra as missing:
    pytest.skip(str(missing), allow_module_level=True)

GREEDY = {"temperature": 0, "max_output_tokens": 40}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture(scope="module")
def capture() -> MemoryCapture:
    return MemoryCapture()


@pytest.fixture(scope="module")
def model(capture: MemoryCapture) -> Iterator[LocalModel]:
    yield LocalModel("policy", LocalModelConfig(return_token_id_information=True), capture=capture)


def test_it_answers_in_every_dialect(model: LocalModel) -> None:
    response = ask(model, "/v1/responses", {"input": "Say hello.", **GREEDY}).expect_ok().json_object()
    said = response["output"][0]["content"][0]["text"]
    chat = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 40}
    completion = ask(model, "/v1/chat/completions", chat).expect_ok().json_object()
    message = ask(model, "/v1/messages", chat).expect_ok().json_object()
    assert "hello" in said.lower()
    assert completion["choices"][0]["message"]["content"] == said
    assert message["content"] == [{"type": "text", "text": said}]
    assert response["usage"]["input_tokens"] > 10


def test_its_token_ids_are_the_ones_it_read_and_wrote(model: LocalModel) -> None:
    response = ask(model, "/v1/responses", {"input": "Say hello.", **GREEDY}).expect_ok().json_object()
    item, usage = response["output"][-1], response["usage"]
    assert len(item["prompt_token_ids"]) == usage["input_tokens"]
    assert len(item["generation_token_ids"]) == len(item["generation_log_probs"]) == usage["output_tokens"]
    assert all(logprob <= 0 for logprob in item["generation_log_probs"])
    assert item["generation_token_ids"][-1] == 2  # <|im_end|>: how to stop is part of what was written


def test_every_token_of_an_emoji_is_named(model: LocalModel) -> None:
    """The engine gives a logprob to the last token of a character alone; a hole is nothing to learn from."""
    request = {"input": "Repeat exactly: 😃😃😃", "temperature": 0, "max_output_tokens": 12}
    [item] = ask(model, "/v1/responses", request).expect_ok().json_object()["output"]
    assert item["content"][0]["text"].startswith("😃😃😃")
    assert item["generation_token_ids"][:9] == [10813, 242, 221] * 3
    assert len(item["generation_log_probs"]) == len(item["generation_token_ids"]) == 12
    assert all(-3 < logprob < 0 for logprob in item["generation_log_probs"])  # greedy: each is likely


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans())))
def test_a_named_token_is_put_in_its_own_place_or_in_none(drawn: list[tuple[int, bool]]) -> None:
    written = [token for token, _ in drawn]
    named = [{"id": token, "place": place} for place, (token, is_named) in enumerate(drawn) if is_named]
    placed = _placed(written, named)
    assert all(entry["place"] == place for place, entry in placed.items())
    assert len(named) < len(written) or len(placed) == len(written)


def test_with_tools_it_calls_one_and_its_prompt_can_still_be_rebuilt(model: LocalModel) -> None:
    asked: Json = {"input": "What's the weather in Oslo?", "tools": [WEATHER], **GREEDY}
    response = ask(model, "/v1/responses", asked).expect_ok().json_object()
    [call] = response["output"]
    assert (call["type"], call["name"]) == ("function_call", "get_weather")
    assert "Oslo" in call["arguments"]
    assert len(call["prompt_token_ids"]) == response["usage"]["input_tokens"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": '{"sky": "rain"}'}
    history = [{"role": "user", "content": asked["input"]}, call, result]
    answered = ask(model, "/v1/responses", {**asked, "input": history}).expect_ok().json_object()
    assert answered["output"][0]["type"] == "message"


def test_it_keeps_to_a_json_schema(model: LocalModel) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string", "maxLength": 10}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
    asked = {"input": "Name a colour.", "text": {"format": form}, **GREEDY}
    response = ask(model, "/v1/responses", asked).expect_ok().json_object()
    assert list(codec.loads(response["output"][0]["content"][0]["text"].encode())) == ["colour"]


def test_a_conversation_longer_than_its_context_is_cut_short(model: LocalModel, capture: MemoryCapture) -> None:
    reply = ask(model, "/ng-rollout/long/v1/responses", {"input": "word " * 4000})
    assert reply.json_object()["incomplete_details"] == {"reason": "max_output_tokens"}
    assert capture.drain("long").calls[0]["local_response_reason"] == "context_length_exceeded"


def test_token_ids_for_training_are_recorded(model: LocalModel, capture: MemoryCapture) -> None:
    body = {"messages": HELLO, "max_tokens": 5}
    reply = ask(model, "/ng-rollout/train/training-token-capture/v1/messages", body).expect_ok()
    assert b"token_ids" not in reply.body
    [record] = capture.drain("train").calls
    assert len(record["tokens"]["generation_token_ids"]) == 5
