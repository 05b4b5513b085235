"""The checks at the door hold to the openai package's own types, but for the differences that are listed."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typing_extensions
from openai.types.responses import Response, ResponseInputItem, ResponseOutputItem, Tool
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from gymkit.errors import WireError
from gymkit.wire.items import HOSTED_INPUTS, HOSTED_OUTPUTS
from gymkit.wire.responses import Request, check_request, check_response
from gymkit.wire.tools import HOSTED_TOOLS
from tests.wire.differences import DIFFERENCES
from tests.wire.examples import examples, mutations
from tests.wire.oracle import accepts_request, accepts_response

Case = tuple[str, Any, bool]
"""A line that names the case, the object, and whether it is a response."""


def members(union: Any) -> tuple[Any, ...]:
    return typing.get_args(typing.get_args(union)[0])


def tried(name: str, value: dict[str, Any], whole: Callable[[dict[str, Any]], Any], response: bool) -> Iterator[Case]:
    yield f"{name} {next(iter(value))}[] valid", whole(value), response
    for path, what, mutated in mutations(value):
        yield f"{name} {path} {what}", whole(mutated), response


def minimal_response() -> dict[str, Any]:
    return {**examples(Response, full=False)[0], "output": []}


def request_examples(full: bool) -> list[dict[str, Any]]:
    hints = typing_extensions.get_type_hints(ResponseCreateParamsNonStreaming)
    settings = {name: examples(hint, full=full) for name, hint in hints.items() if name not in ("input", "tools")}
    base = {"input": "text", "tools": examples(Tool, full=False)[:1]}
    if full:
        base |= {name: values[0] for name, values in settings.items()}
    return [base, *({**base, name: value} for name, values in settings.items() for value in values)]


def item_cases(full: bool) -> Iterator[Case]:
    base = minimal_response()
    for member in members(ResponseOutputItem):
        item = examples(member, full=full)[0]
        yield from tried(f"output:{name_of(item)}", {"output": [item]}, lambda part: {**base, **part}, True)
    for member in members(ResponseInputItem):
        item = examples(member, full=full)[0]
        yield from tried(f"input:{name_of(item)}", {"input": [item]}, lambda part: part, False)


def name_of(item: dict[str, Any]) -> str:
    kind = item.get("type") or ("message" if "role" in item else "reference")
    return "uncalled_output" if kind == "function_call_output" and not item.get("call_id") else kind


def tool_cases(full: bool) -> Iterator[Case]:
    base = minimal_response()
    for member in members(Tool):
        tool = examples(member, full=full)[0]
        yield from tried(f"tool:{tool['type']}", {"tools": [tool]}, lambda part: {**base, **part}, True)
    for choice in examples(Response.model_fields["tool_choice"].annotation, full=full):
        yield from tried("choice", {"tool_choice": choice}, lambda part: {**base, **part}, True)


def whole_cases(full: bool) -> Iterator[Case]:
    response = {**examples(Response, full=full)[0], "output": [], "tools": []}
    for path, what, mutated in mutations(response):
        yield f"response {path} {what}", mutated, True
    for path, what, mutated in mutations({**request_examples(full)[0], "tools": []}):
        yield f"request {path} {what}", mutated, False


def verdict(data: Any, response: bool) -> bool:
    try:
        (check_response if response else check_request)(data)
    except WireError:
        return False
    return True


def mismatches(cases: Iterator[Case]) -> Iterator[tuple[str, str]]:
    """Yield gymkit's verdict and the line of each case on which the package decides otherwise."""
    for line, data, response in cases:
        ours = verdict(data, response)
        if ours != (accepts_response if response else accepts_request)(data):
            yield ("accepts" if ours else "rejects"), line


def all_cases() -> Iterator[Case]:
    for full in (False, True):
        for cases in (item_cases, tool_cases, whole_cases):
            yield from cases(full)


@pytest.fixture(scope="module")
def found() -> list[tuple[str, str]]:
    return list(mismatches(all_cases()))


def test_the_corpus_is_large() -> None:
    assert sum(1 for _ in all_cases()) > 20_000


def test_every_difference_on_a_wrong_object_has_a_reason(found: list[tuple[str, str]]) -> None:
    unexplained = [each for each in found if not any(difference.covers(*each) for difference in DIFFERENCES)]
    assert not unexplained, f"{len(unexplained)}: {unexplained[:20]}"


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.reason[:40])
def test_every_reason_is_still_needed(difference: Any, found: list[tuple[str, str]]) -> None:
    assert any(difference.covers(*each) for each in found)


@pytest.mark.parametrize("full", [False, True], ids=["minimal", "full"])
def test_every_valid_shape_of_a_response_is_accepted(full: bool) -> None:
    shapes = [each for each in examples(Response, full=full) if not has_uncalled_output(each)]
    assert len(shapes) > 250
    assert all(accepts_response(each) for each in shapes)
    assert not [each for each in shapes if not verdict(each, True)]


@pytest.mark.parametrize("full", [False, True], ids=["minimal", "full"])
def test_every_valid_shape_of_a_request_is_accepted(full: bool) -> None:
    items = [item for item in examples(ResponseInputItem, full=full) if name_of(item) != "reference"]
    made = [*request_examples(full), *({"input": [item]} for item in items)]
    shapes = [each for each in made if not has_uncalled_output(each)]
    assert len(shapes) > 250
    assert all(accepts_request(each) for each in shapes)
    assert not [each for each in shapes if not verdict(each, False)]


def has_uncalled_output(whole: dict[str, Any]) -> bool:
    lists = [whole[key] for key in ("output", "input", "instructions") if isinstance(whole.get(key), list)]
    return any(name_of(item) in ("uncalled_output", "reference") for items in lists for item in items)


def literals(annotation: Any) -> set[str]:
    if typing.get_origin(annotation) is typing.Literal:
        return set(typing.get_args(annotation))
    return {value for argument in typing.get_args(annotation) for value in literals(argument)}


@pytest.mark.parametrize(
    ("union", "hosted", "read"),
    [
        (ResponseOutputItem, HOSTED_OUTPUTS, {"message", "function_call", "function_call_output", "reasoning"}),
        (ResponseInputItem, HOSTED_INPUTS, {"message", "function_call", "function_call_output", "reasoning"}),
        (Tool, HOSTED_TOOLS, {"function"}),
    ],
    ids=["output", "input", "tools"],
)
def test_the_types_that_are_known_are_the_package_s(union: Any, hosted: frozenset[str], read: set[str]) -> None:
    known = {value for member in members(union) for value in literals(member.model_fields["type"].annotation)}
    assert hosted | read == known


def test_the_request_knows_the_package_s_settings() -> None:
    theirs = set(typing_extensions.get_type_hints(ResponseCreateParamsNonStreaming))
    assert set(Request.__annotations__) <= theirs
