"""Streams: put together again, the events of any reply are that reply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings

from gymkit.wire import codec
from gymkit.wire.dialects.reply_from_chat import reply_from_chat
from gymkit.wire.streams import chat, messages, responses
from tests.wire.dialects import strategies

Json = dict[str, Any]


def payloads(events: Iterable[bytes]) -> list[Json]:
    found = []
    for event in events:
        assert event.endswith(b"\n\n")
        [line] = [line for line in event.split(b"\n") if line.startswith(b"data: ")]
        if line != b"data: [DONE]":
            found.append(codec.loads(line.removeprefix(b"data: ")))
    return found


@settings(max_examples=40, deadline=None)
@given(strategies.completions())
def test_chat(completion: Json) -> None:
    chunks = payloads(chat.events(completion, usage=True))
    message: Json = {"content": None, "refusal": None}
    logprobs = None
    for chunk in chunks[:-1]:
        [choice] = chunk["choices"]
        message |= choice["delta"]
        logprobs = choice.get("logprobs") or logprobs
    for number, call in enumerate(message.get("tool_calls", ())):
        assert call.pop("index") == number
    [told] = completion["choices"]
    assert message == told["message"]
    assert (chunks[-2]["choices"][0]["finish_reason"], logprobs) == (told["finish_reason"], told["logprobs"])
    assert chunks[-1]["usage"] == completion.get("usage")
    assert {(chunk["id"], chunk["object"]) for chunk in chunks} == {(completion["id"], "chat.completion.chunk")}
    assert len(payloads(chat.events(completion, usage=False))) == len(chunks) - 1


@settings(max_examples=40, deadline=None)
@given(strategies.messages_replies())
def test_messages(reply: Json) -> None:
    begun, *middle, delta, stop = payloads(messages.events(reply))
    blocks: list[Json] = []
    for event in middle:
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            _fill(blocks[-1], event["delta"])
    assert {**begun["message"], **delta["delta"], "content": blocks, "usage": reply["usage"]} == reply
    assert delta["usage"] == {"output_tokens": reply["usage"]["output_tokens"]}
    assert stop == {"type": "message_stop"}


def _fill(block: Json, delta: Json) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] += delta["signature"]
        case "input_json_delta":
            block["input"] = codec.loads(delta["partial_json"].encode("utf-8", "surrogatepass"))


@settings(max_examples=40, deadline=None)
@given(strategies.completions())
def test_responses(completion: Json) -> None:
    response = reply_from_chat(completion, {}).value
    created, *done, completed = payloads(responses.events(response))
    assert created["response"]["output"] == []
    assert [event["item"] for event in done] == response["output"] == completed["response"]["output"]
    assert completed["response"] == response
    assert [event["sequence_number"] for event in (created, *done, completed)] == list(range(len(done) + 2))
