"""Tools, the choice among them and the form of the reply, each written out in the three dialects."""

from __future__ import annotations

from typing import Any

import pytest

from gymkit.wire.dialects.request_from_chat import request_from_chat
from gymkit.wire.dialects.request_from_messages import request_from_messages
from gymkit.wire.dialects.request_to_chat import request_to_chat
from gymkit.wire.dialects.request_to_messages import request_to_messages

Json = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ADD = {"type": "function", "name": "add", "description": "Add.", "parameters": SCHEMA, "strict": True}
ADD_OF_CHAT = {
    "type": "function",
    "function": {"name": "add", "description": "Add.", "parameters": SCHEMA, "strict": True},
}
ADD_OF_MESSAGES = {"name": "add", "description": "Add.", "input_schema": SCHEMA, "strict": True}


def to_chat(**params: Any) -> tuple[Json, list[str]]:
    made, dropped = request_to_chat({"input": "x", **params})
    return made, [drop.path for drop in dropped]


def to_messages(**params: Any) -> tuple[Json, list[str]]:
    made, dropped = request_to_messages({"input": "x", **params})
    return made, [drop.path for drop in dropped]


def from_chat(**fields: Any) -> tuple[Json, list[str]]:
    made, dropped = request_from_chat({"messages": [], **fields})
    return made, [drop.path for drop in dropped]


def from_messages(**fields: Any) -> tuple[Json, list[str]]:
    made, dropped = request_from_messages({"messages": [], "max_tokens": 9, **fields})
    return made, [drop.path for drop in dropped]


def test_a_function_in_three_dialects() -> None:
    assert to_chat(tools=[ADD])[0]["tools"] == [ADD_OF_CHAT]
    assert to_messages(tools=[ADD])[0]["tools"] == [ADD_OF_MESSAGES]
    assert from_chat(tools=[ADD_OF_CHAT])[0]["tools"] == [ADD]
    assert from_messages(tools=[ADD_OF_MESSAGES])[0]["tools"] == [ADD]


def test_a_function_without_a_schema_has_an_empty_one_where_one_is_wanted() -> None:
    bare = {"type": "function", "name": "now"}
    assert to_chat(tools=[bare])[0]["tools"] == [{"type": "function", "function": {"name": "now"}}]
    assert to_messages(tools=[bare])[0]["tools"][0]["input_schema"] == {"type": "object", "properties": {}}


def test_groups_go_flat_and_hosted_tools_are_reported() -> None:
    group = {"type": "namespace", "name": "math", "description": "d", "tools": [ADD, {"type": "mcp"}]}
    hosted = {"type": "web_search"}
    made, dropped = to_chat(tools=[hosted, group])
    assert [tool["function"]["name"] for tool in made["tools"]] == ["math__add"]
    assert dropped == ["tools[0]"]
    made, dropped = to_messages(tools=[hosted, group])
    assert [tool["name"] for tool in made["tools"]] == ["math__add"]
    assert dropped == ["tools[0]"]
    assert from_messages(tools=[{"type": "bash_20250124", "name": "bash"}]) == (
        {"input": [], "max_output_tokens": 9, "tools": []},
        ["tools[0]"],
    )
    assert from_chat(tools=[{"type": "telepathy"}])[1] == ["tools[0]"]


def test_a_custom_tool_with_a_grammar() -> None:
    grammar = {"definition": "start: /x/", "syntax": "lark"}
    ours = {"type": "custom", "name": "patch", "format": {"type": "grammar", **grammar}}
    chats = {"type": "custom", "custom": {"name": "patch", "format": {"type": "grammar", "grammar": grammar}}}
    assert to_chat(tools=[ours])[0]["tools"] == [chats]
    assert from_chat(tools=[chats])[0]["tools"] == [ours]
    assert to_messages(tools=[ours])[1] == ["tools[0]"]


@pytest.mark.parametrize(
    ("ours", "chats", "theirs"),
    [
        ("none", "none", {"type": "none"}),
        ("required", "required", {"type": "any"}),
        (
            {"type": "function", "name": "add"},
            {"type": "function", "function": {"name": "add"}},
            {"type": "tool", "name": "add"},
        ),
    ],
)
def test_the_choice_in_three_dialects(ours: Any, chats: Any, theirs: Json) -> None:
    assert to_chat(tools=[ADD], tool_choice=ours)[0]["tool_choice"] == chats
    assert to_messages(tools=[ADD], tool_choice=ours)[0]["tool_choice"] == theirs
    assert from_chat(tool_choice=chats)[0]["tool_choice"] == ours
    assert from_messages(tool_choice=theirs)[0]["tool_choice"] == ours


def test_a_choice_without_tools_and_the_default_choice_say_nothing() -> None:
    for params in ({"tool_choice": "required"}, {"tools": [ADD], "tool_choice": "auto"}):
        assert "tool_choice" not in to_chat(**params)[0]
        assert "tool_choice" not in to_messages(**params)[0]


def test_some_tools_may_be_allowed() -> None:
    ours = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "add"}]}
    chats = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "add"}}]},
    }
    assert to_chat(tools=[ADD], tool_choice=ours)[0]["tool_choice"] == chats
    assert from_chat(tool_choice=chats)[0]["tool_choice"] == ours
    assert to_messages(tools=[ADD], tool_choice=ours)[1] == ["tool_choice"]


def test_choices_without_a_place_are_reported() -> None:
    assert to_chat(tools=[ADD], tool_choice={"type": "web_search_preview"})[1] == ["tool_choice"]
    assert from_chat(tool_choice={"type": "function"})[1] == ["tool_choice"]
    assert from_messages(tool_choice={"type": "tool"})[1] == ["tool_choice"]


def test_parallel_calls() -> None:
    assert to_chat(tools=[ADD], parallel_tool_calls=False)[0]["parallel_tool_calls"] is False
    assert to_messages(tools=[ADD], parallel_tool_calls=False)[0]["tool_choice"] == {
        "type": "auto",
        "disable_parallel_tool_use": True,
    }
    made, _ = from_messages(tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert (made["tool_choice"], made["parallel_tool_calls"]) == ("required", False)
    assert "parallel_tool_calls" not in to_chat(parallel_tool_calls=True)[0]  # services refuse it without tools


def test_the_form_of_the_reply_in_three_dialects() -> None:
    ours = {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}}
    chats = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
    assert to_chat(text=ours)[0]["response_format"] == chats
    assert from_chat(response_format=chats)[0]["text"] == ours
    made, dropped = to_messages(text=ours)
    assert made["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert dropped == ["text.format.name", "text.format.strict"]
    assert from_messages(output_config=made["output_config"])[0]["text"]["format"]["schema"] == SCHEMA
    assert to_chat(text={"format": {"type": "json_object"}})[0]["response_format"] == {"type": "json_object"}
    assert to_messages(text={"format": {"type": "json_object"}})[1] == ["text.format"]
    assert "response_format" not in to_chat(text={"format": {"type": "text"}})[0]


def test_effort_and_verbosity() -> None:
    asked = {"reasoning": {"effort": "high", "summary": "auto"}, "text": {"verbosity": "low"}}
    made, dropped = to_chat(**asked)
    assert (made["reasoning_effort"], made["verbosity"], dropped) == ("high", "low", ["reasoning.summary"])
    made, dropped = to_messages(**asked)
    assert made["output_config"] == {"effort": "high"}
    assert dropped == ["reasoning.summary", "text.verbosity"]
    assert to_messages(reasoning={"effort": "minimal"})[1] == ["reasoning.effort"]
    assert (
        from_chat(reasoning_effort="low", verbosity="high")[0].items()
        >= {
            "reasoning": {"effort": "low"},
            "text": {"verbosity": "high"},
        }.items()
    )


def test_settings_of_another_kind_are_reported_and_not_passed_on() -> None:
    asked = {"reasoning": {"effort": 7}, "text": {"format": "json", "verbosity": []}}
    made, dropped = to_chat(**asked)
    assert not {"reasoning_effort", "response_format", "verbosity"} & made.keys()
    assert dropped == ["reasoning.effort", "text.verbosity", "text.format"]
    assert to_messages(**asked)[1] == ["reasoning.effort", "text.format", "text.verbosity"]


def test_logprobs() -> None:
    include = ["message.output_text.logprobs", "reasoning.encrypted_content"]
    made, dropped = to_chat(include=include, top_logprobs=2)
    assert (made["logprobs"], made["top_logprobs"], dropped) == (True, 2, ["include[]"])
    assert from_chat(logprobs=True, top_logprobs=2)[0].items() >= {"include": include[:1], "top_logprobs": 2}.items()
    assert set(to_messages(include=include, top_logprobs=2)[1]) == {"include", "top_logprobs"}


def test_bounds_on_the_reply() -> None:
    assert to_chat(max_output_tokens=5)[0]["max_tokens"] == 5
    assert from_chat(max_completion_tokens=5)[0]["max_output_tokens"] == 5
    assert from_chat(max_tokens=6)[0]["max_output_tokens"] == 6
    assert to_messages()[0]["max_tokens"] == 4096
    assert from_messages()[0]["max_output_tokens"] == 9
