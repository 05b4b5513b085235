"""Chat messages of other programs as items."""

from __future__ import annotations

import pytest

from gymkit.wire.conversations import Call, Message, items_of, response_of
from gymkit.wire.responses import check_response


def test_what_was_asked_ends_where_the_assistant_begins() -> None:
    asked, came = items_of(
        [
            Message("system", "s"),
            Message("user", "u"),
            Message("assistant", "", reasoning="why", calls=(Call("c", "f", {"x": 1}),)),
            Message("tool", "out", call_id="c"),
            Message("user", "and?"),
            Message("assistant", "done"),
        ]
    )
    assert [item["role"] for item in asked] == ["system", "user"]
    kinds = ["reasoning", "function_call", "function_call_output", "message", "message"]
    assert [item["type"] for item in came] == kinds
    assert came[1]["arguments"] == '{"x":1}'
    assert came[3] == {"type": "message", "role": "user", "content": "and?"}


@pytest.mark.parametrize(("arguments", "text"), [("{", "{"), ({"a": "\ud800"}, '{"a":"\\ud800"}'), ([1], "[1]")])
def test_arguments_are_text_as_written_or_json(arguments: object, text: str) -> None:
    _, came = items_of([Message("assistant", "", calls=(Call("c", "f", arguments),))])
    assert came[0]["arguments"] == text


def test_an_assistant_that_says_nothing_has_an_empty_message() -> None:
    _, came = items_of([Message("assistant", "")])
    assert came[0]["content"][0]["text"] == ""


def test_the_response_is_one_that_a_service_could_have_sent() -> None:
    _, came = items_of([Message("assistant", "hi", reasoning="r", calls=(Call("c", "f", {}),))])
    check_response(response_of(came, model="m", usage={"input": 3, "output": 4}, incomplete=False))
    check_response(response_of(came, model="m", usage=None, incomplete=True))
    usage = response_of(came, model="m", usage={"input": 3, "output": 4, "cached": 1}, incomplete=False)["usage"]
    assert (usage["total_tokens"], usage["input_tokens_details"]) == (7, {"cached_tokens": 1})
