"""Whatever passes the check at the door is converted: each valid object, wrong in one place, is refused or survives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from gymkit.errors import WireError
from gymkit.wire import chat, completions, messages, responses
from gymkit.wire.dialects.dropped import Converted
from gymkit.wire.dialects.messages_to_chat import messages_to_chat
from gymkit.wire.dialects.reply_from_chat import reply_from_chat
from gymkit.wire.dialects.reply_from_messages import reply_from_messages
from gymkit.wire.dialects.reply_to_chat import reply_to_chat
from gymkit.wire.dialects.reply_to_messages import reply_to_messages
from gymkit.wire.dialects.request_from_chat import request_from_chat
from gymkit.wire.dialects.request_from_messages import request_from_messages
from gymkit.wire.dialects.request_to_chat import request_to_chat
from gymkit.wire.dialects.request_to_messages import request_to_messages
from gymkit.wire.dialects.tolerant import tolerate_chat, tolerate_responses
from tests.wire.examples import examples, mutations

Json = dict[str, Any]
Check = Callable[[object], object]


def some(annotation: Any) -> Iterator[tuple[str, Json]]:
    """Each example of a type, and of the fullest one each copy that is wrong in one place."""
    found = [example for full in (False, True) for example in examples(annotation, full=full)]
    for number, example in enumerate(found):
        yield f"example {number}", example
    fullest = max(found, key=lambda example: len(str(example)))
    for path, what, mutated in mutations(fullest):
        yield f"{path} {what}", mutated


def chats_of_messages(body: Json) -> Converted:
    made = messages_to_chat(body)
    return Converted(made.chat, made.dropped)


CONVERSIONS: dict[str, tuple[Any, Check, Callable[[Json], Converted], Check]] = {
    "chat request": (
        CompletionCreateParamsNonStreaming,
        chat.check_request,
        request_from_chat,
        responses.check_request,
    ),
    "messages request": (
        MessageCreateParamsNonStreaming,
        messages.check_request,
        request_from_messages,
        responses.check_request,
    ),
    "messages request to chat": (
        MessageCreateParamsNonStreaming,
        messages.check_request,
        chats_of_messages,
        chat.check_request,
    ),
    "responses request to chat": (
        ResponseCreateParamsNonStreaming,
        responses.check_request,
        request_to_chat,
        chat.check_request,
    ),
    "responses request to messages": (
        ResponseCreateParamsNonStreaming,
        responses.check_request,
        request_to_messages,
        messages.check_request,
    ),
    "completion": (
        ChatCompletion,
        completions.check_completion,
        lambda reply: reply_from_chat(reply, {}, think_tags=True),
        responses.check_response,
    ),
    "messages reply": (
        Message,
        messages.check_reply,
        lambda reply: reply_from_messages(reply, {}),
        responses.check_response,
    ),
    "response to chat": (Response, responses.check_response, reply_to_chat, completions.check_completion),
    "response to messages": (Response, responses.check_response, reply_to_messages, messages.check_reply),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_what_is_let_in_is_converted_into_something_valid(name: str) -> None:
    annotation, check, convert, check_made = CONVERSIONS[name]
    let_in, wrong = 0, []
    for label, given in some(annotation):
        try:
            check(given)
        except WireError:
            continue
        let_in += 1
        try:
            check_made(convert(given).value)
        except Exception as error:  # noqa: BLE001 - every kind of crash is what this looks for
            wrong.append(f"{label}: {error!r:.200}")
    assert let_in > 10
    assert wrong == []


def test_what_streams_is_made_fit_or_refused() -> None:
    wrong = []
    group = {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "function", "name": "f"}]}
    grouped = [(label, mutated) for label, _, mutated in mutations({"input": "x", "tools": [group]})]
    for label, given in [*some(ResponseCreateParamsNonStreaming), *grouped]:
        try:
            params = tolerate_responses({**given, "stream": True}).params
            responses.check_request(params)
            request_to_chat(params)
        except WireError:
            continue
        except Exception as error:  # noqa: BLE001 - as above
            wrong.append(f"{label}: {error!r:.200}")
    for _, given in some(CompletionCreateParamsNonStreaming):
        tolerate_chat({**given, "stream": True})
    assert wrong == []
