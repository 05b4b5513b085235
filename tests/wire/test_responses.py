from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from gymkit.errors import WireError
from gymkit.wire.codec import loads
from gymkit.wire.responses import Request, Response, check_request, check_response, message_text, unpaired_calls
from tests.wire.builders import answer, call, output, response, usage
from tests.wire.examples import places
from tests.wire.oracle import accepts_response
from tests.wire.test_codec import json_values

NEMO_GYM = Path(__file__).parents[1] / "data" / "nemo_gym"


def problems(check: Any, data: object) -> list[str]:
    with pytest.raises(WireError) as raised:
        check(data)
    return raised.value.problems


def response_problems(data: object) -> list[str]:
    return problems(check_response, data)


def request_problems(data: object) -> list[str]:
    return problems(check_request, data)


# What an agent returns beyond the Responses API, because one response may hold the whole trajectory.
TRAJECTORY_ITEMS = {
    "a user's message as text": {"type": "message", "role": "user", "content": "add 1"},
    "a user's message in parts": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
    "a system message": {"type": "message", "role": "system", "content": ""},
    "a developer message": {"type": "message", "role": "developer", "content": []},
    "an answer as text": {"type": "message", "role": "assistant", "content": "done"},
    "an answer without a status": {k: v for k, v in answer().items() if k != "status"},
    "an executed call's output": output(),
    "an executed call's output with nulls": output(id=None, status=None),
    "an output in parts": output(text=[{"type": "input_text", "text": "x"}, {"type": "input_image"}]),
    "a video": {"type": "message", "role": "user", "content": [{"type": "input_video", "video_url": "data:"}]},
}


@pytest.mark.parametrize("item", TRAJECTORY_ITEMS.values(), ids=TRAJECTORY_ITEMS)
def test_a_response_may_hold_the_trajectory_which_the_responses_api_does_not_know(item: dict[str, Any]) -> None:
    assert not accepts_response(response(item))
    assert check_response(response(call(), item, answer())) is None


@pytest.mark.parametrize("path", sorted(NEMO_GYM.glob("*/rollouts.jsonl")), ids=lambda path: path.parent.name)
def test_rows_that_nemo_gym_wrote_are_valid(path: Path) -> None:
    rows = [loads(line) for line in path.read_bytes().split(b"\n") if line]
    assert rows
    for row in rows:
        check_request(row["responses_create_params"])
        check_response(row["response"])


def test_the_usage_comes_back_as_numbers() -> None:
    """The openai package takes numbers in quotes, so a service may send them; sums need numbers."""
    given_usage = usage(7, input_tokens="7", x_extra=[1])
    assert check_response(response(answer(), usage=given_usage)) == usage(7, x_extra=[1])
    assert given_usage["input_tokens"] == "7"


@pytest.mark.parametrize("absent", [{}, {"usage": None}], ids=["absent", "null"])
def test_usage_may_be_absent(absent: dict[str, Any]) -> None:
    assert check_response(response(answer(), **absent)) is None


@pytest.mark.parametrize("path", list(places(usage())), ids=lambda path: ".".join(path))
def test_partial_usage_is_rejected(path: tuple[str, ...]) -> None:
    partial = usage()
    inner = partial[path[0]] if len(path) == 2 else partial
    del inner[path[-1]]
    assert response_problems(response(answer(), usage=partial)) == [f"usage.{'.'.join(path)}: is missing"]


def test_usage_may_leave_a_detail_unknown_but_not_the_details() -> None:
    unknown = usage(input_tokens_details={"cached_tokens": None}, output_tokens_details={"reasoning_tokens": None})
    assert check_response(response(answer(), usage=unknown)) == unknown
    bare = usage(input_tokens_details=None)
    assert response_problems(response(answer(), usage=bare)) == [
        "usage.input_tokens_details: must be an object, not null"
    ]


RESPONSE_MISTAKES: list[tuple[object, list[str]]] = [
    (None, ["the whole: must be an object, not null"]),
    ([], ["the whole: must be an object, not a list"]),
    (response(object="chat.completion"), ["object: must be 'response', not 'chat.completion'"]),
    (response(output={}), ["output: must be a list, not an object"]),
    (response("hello"), ["output[0]: must be an object, not 'hello'"]),  # type: ignore[arg-type]
    (response(answer(), {"role": "user"}), ["output[1]: has no type"]),
    (response({"type": ["a"]}), ["output[0]: has a type that is not text but a list"]),
    (response({"type": "function-call"}), ["output[0]: has the unknown type 'function-call'"]),
    (response(call(arguments={"count": 1})), ["output[0].arguments: must be text, not an object"]),
    (response({"type": "function_call", "name": "a", "arguments": "{}"}), ["output[0].call_id: is missing"]),
    (response(answer(content=[{"type": "text", "text": "x"}])), ["output[0].content[0]: has the unknown type 'text'"]),
    (response(answer(content=[{"type": "refusal"}])), ["output[0].content[0].refusal: is missing"]),
    (response(answer(content=5)), ["output[0].content: must be text or a list, not 5"]),
    (response(answer(role="tool")), ["output[0].role: must be 'assistant', not 'tool'"]),
    (response(created_at="now"), ["created_at: must be a number, not 'now'"]),
    (response(parallel_tool_calls="maybe"), ["parallel_tool_calls: must be true or false, not 'maybe'"]),
    (response(tool_choice="any"), ["tool_choice: must be 'none', 'auto' or 'required', not 'any'"]),
    (response(tool_choice={"type": "function", "function": {"name": "a"}}), ["tool_choice.name: is missing"]),
    (response(tools=[{"type": "function", "function": {"name": "a"}}]), ["tools[0].name: is missing"]),
    (response(instructions=5), ["instructions: must be text or a list, not 5"]),
    (response(instructions=[{"role": "x", "content": ""}]), [
        "instructions[0].role: must be 'user', 'assistant', 'system' or 'developer', not 'x'"
    ]),
    (response(incomplete_details={"reason": "bored"}), [
        "incomplete_details.reason: must be 'max_output_tokens', 'max_messages', 'content_filter' or 'steered', "
        "not 'bored'"
    ]),
    (response({"type": "reasoning", "reasoning": {}, "id": "x"}), ["output[0].summary: is missing"]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), RESPONSE_MISTAKES, ids=[each[1][0] for each in RESPONSE_MISTAKES])
def test_a_mistake_is_told_by_place_and_reason(data: object, expected: list[str]) -> None:
    assert response_problems(data) == expected


REQUEST_MISTAKES = [
    ({}, ["input: is missing"]),
    ({"input": None}, ["input: must be text or a list, not null"]),
    ({"input": [{"content": "x"}]}, ["input[0].role: is missing"]),
    ({"input": [{"type": "function_call_output", "output": ""}]}, ["input[0].call_id: is missing"]),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, ["input[0].content[0].detail: is missing"]),
    ({"input": "x", "stream": True}, ["stream: must be false, not true"]),
    ({"input": "x", "tools": {}}, ["tools: must be a list, not an object"]),
    ({"input": "x", "tools": [{"name": "a"}]}, ["tools[0]: has no type"]),
    ({"input": "x", "metadata": {"a": 1}}, ["metadata.a: must be text, not 1"]),
]


@pytest.mark.parametrize(("data", "expected"), REQUEST_MISTAKES, ids=[each[1][0] for each in REQUEST_MISTAKES])
def test_a_mistake_in_a_request_is_told_the_same_way(data: object, expected: list[str]) -> None:
    assert request_problems(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        {"input": ""},
        {"input": []},
        {"input": [{"role": "user", "content": "x"}]},
        {"input": [{"role": "user", "content": "x", "type": None}], "tools": [], "tool_choice": "required"},
        {"input": [{"role": "assistant", "content": "x"}, call(), output(), answer()]},
        {"input": "x", "tools": [{"type": "function", "name": "add"}], "x_extra": {"kept": 1}},
        {"input": [{"type": "web_search_call", "id": "w", "anything": 1}]},
    ],
)
def test_requests_that_may_be_sent(data: object) -> None:
    check_request(data)


def test_long_lists_of_problems_are_cut_and_counted() -> None:
    told = response_problems(response(*[call(name=5) for _ in range(100)]))
    assert told[:2] == ["output[0].name: must be text, not 5", "output[1].name: must be text, not 5"]
    assert told[5:] == ["and 95 more"]


def test_a_big_value_is_not_echoed() -> None:
    secret = "hunter2" * 10_000
    data = response({**call(), "status": secret}, {"type": secret}, created_at=secret, tools=[{"type": [secret]}])
    message = "; ".join(response_problems(data))
    assert len(message) < 600
    assert "hunter2" * 7 not in message


RESPONSES: TypeAdapter[Any] = TypeAdapter(Response)
VALID = response(
    call(), output(), {"type": "reasoning", "id": "t", "summary": [{"type": "summary_text", "text": "x"}]},
    {"type": "web_search_call", "id": "w"}, answer(), usage=usage(), instructions=[{"role": "user", "content": "x"}],
    tools=[{"type": "function", "name": "add", "parameters": {}}],
)  # fmt: skip


@given(st.sampled_from(list(places(VALID))), json_values)
def test_anything_anywhere_is_accepted_or_a_wire_error_and_never_altered(path: tuple[Any, ...], value: Any) -> None:
    data = copy.deepcopy(VALID)
    parent: Any = data
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    before = copy.deepcopy(data)
    for check in (check_response, check_request):
        try:
            check(data)
        except WireError as error:
            assert error.problems and all(len(each) < 400 for each in error.problems)
    assert data == before


@given(st.sampled_from([path for path in [(), *places(VALID)] if not path or path[-1] != "parameters"]), json_values)
def test_unknown_fields_are_kept_at_every_depth(path: tuple[Any, ...], value: Any) -> None:
    data: Any = copy.deepcopy(VALID)
    inner = data
    for key in path:
        inner = inner[key]
    if isinstance(inner, dict):
        inner["x_extra"] = value
    assert RESPONSES.validate_python(data) == data


def test_the_request_s_type_keeps_unknown_fields_too() -> None:
    data = {"input": [{"role": "user", "content": "x", "x_extra": 1}], "x_extra": {"a": [1]}}
    assert TypeAdapter(Request).validate_python(data) == data


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        ([], ""),
        ([{"type": "output_text", "text": "a", "annotations": []}, {"type": "output_text", "text": "b"}], "ab"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([{"type": "input_text", "text": "see "}, {"type": "input_image", "image_url": "x"}], "see "),
        ([{"type": "reasoning_text", "text": None}, "bare", 7, None], "bare"),
        ({"type": "output_text", "text": "not a list"}, ""),
    ],
)
def test_message_text_reads_every_shape_of_content(content: Any, text: str) -> None:
    assert message_text({"type": "message", "role": "user", "content": content}) == text


def test_message_text_of_an_item_without_content_is_empty() -> None:
    assert message_text({"type": "function_call"}) == ""


def test_unpaired_calls_are_what_the_agent_asks_for() -> None:
    first, own, second = call("c1"), call("c2"), call("c3", name="get")
    assert unpaired_calls([first, own, output("c2"), second, answer()]) == [first, second]


def test_an_output_before_its_call_pairs_it_too() -> None:
    assert unpaired_calls([output("c1"), call("c1")]) == []


def test_calls_of_hosted_tools_are_never_unpaired() -> None:
    assert unpaired_calls([{"type": "web_search_call", "id": "w"}, {"type": "custom_tool_call", "call_id": "c1"}]) == []


@given(st.lists(st.tuples(st.sampled_from([call, output]), st.sampled_from("abcd"))))
def test_every_call_is_either_unpaired_or_answered(made: list[tuple[Any, str]]) -> None:
    items = [make(call_id) for make, call_id in made]
    unpaired = unpaired_calls(items)
    answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
    calls = [item for item in items if item["type"] == "function_call"]
    assert unpaired == [item for item in calls if item in unpaired]
    assert all((item["call_id"] in answered) != (item in unpaired) for item in calls)
