"""What a streaming client may send: known things stay, the rest is taken off by name."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from gymkit.wire.dialects.tolerant import regroup, tolerate_chat, tolerate_responses
from gymkit.wire.responses import check_request
from tests.wire.builders import call, response
from tests.wire.dialects import strategies

Json = dict[str, Any]


@settings(max_examples=40, deadline=None)
@given(strategies.responses_requests())
def test_a_valid_request_stays_valid_and_loses_nothing_but_its_groups(request: Json) -> None:
    params, dropped, _ = tolerate_responses({**request, "stream": True, "stream_options": {"include_usage": True}})
    check_request(params)
    assert dropped == []
    assert not {"stream", "stream_options"} & params.keys()
    kept = {name: value for name, value in request.items() if name not in ("input", "tools", "instructions")}
    assert {name: params[name] for name in kept} == kept


def test_instructions_are_hoisted_from_the_beginning_only() -> None:
    system = {"role": "system", "content": "a"}
    pictured = {"role": "system", "content": [{"type": "input_image", "image_url": "x", "detail": "auto"}]}
    user = {"role": "user", "content": "hi"}
    developer = {"role": "developer", "content": [{"type": "input_text", "text": "b"}]}
    params = tolerate_responses({"input": [system, developer, user, system], "stream": True}).params
    assert (params["instructions"], params["input"]) == ("a\nb", [user, system])
    params = tolerate_responses({"input": [pictured, user], "stream": True}).params
    assert params["input"] == [pictured, user]
    assert "instructions" not in params


def test_calls_of_grouped_tools_go_flat_and_come_back_grouped() -> None:
    tools = [{"type": "namespace", "name": "math", "tools": [{"type": "function", "name": "add"}]}]
    params, _, groups = tolerate_responses({"input": [{**call(name="add"), "namespace": "math"}], "tools": tools})
    assert params["input"] == [call(name="math__add")]
    assert params["tools"] == [{"type": "function", "name": "math__add"}]
    made = regroup(response(call(name="math__add"), call(name="other")), groups)
    assert made["output"] == [{**call(name="add"), "namespace": "math"}, call(name="other")]


def test_what_is_not_known_is_named() -> None:
    body = {"input": [{"type": "mystery"}, "text"], "tools": [{"type": "mystery"}, 7], "mystery": 1, "stream": True}
    params, dropped, _ = tolerate_responses(body)
    assert [drop.path for drop in dropped] == ["mystery", "tools[0]", "tools[1]", "input[0]"]
    assert params == {"input": ["text"], "tools": []}  # text where an item should be is for the check to refuse


def test_a_chat_request_loses_what_is_not_chats() -> None:
    body = {"messages": [], "stream": True, "stream_options": {}, "mystery": 1, "seed": 3}
    params, dropped = tolerate_chat(body)
    assert params == {"messages": [], "seed": 3}
    assert [drop.path for drop in dropped] == ["mystery"]
