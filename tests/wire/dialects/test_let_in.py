"""What the client libraries' own types allow is let in; each exception is listed with its reason."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from gymkit.errors import WireError
from gymkit.wire import chat, completions, messages
from tests.wire.examples import examples

Json = dict[str, Any]

REFUSED_BLOCKS = (
    *("bash_code_execution_tool_result", "browser_state", "code_execution_tool_result", "container_upload"),
    *("search_result", "server_tool_use", "text_editor_code_execution_tool_result", "tool_reference"),
    *("tool_search_tool_result", "web_fetch_tool_result", "web_search_tool_result"),
)
"""Blocks of tools that Anthropic runs, or of its file store: no other model could be shown them."""

REFUSED_SOURCES = ("content", "file")
"""Documents that are more than a text or a PDF."""


def refused(annotation: Any, check: Any) -> list[tuple[Json, list[str]]]:
    found = []
    for full in (False, True):
        for example in examples(annotation, full=full):
            try:
                check(example)
            except WireError as error:
                found.append((example, error.problems))
    return found


def test_chat_requests_but_for_functions_as_they_were_before_tools() -> None:
    for example, problems in refused(CompletionCreateParamsNonStreaming, chat.check_request):
        assert all("function" in str(example["messages"]) and "messages" in problem for problem in problems), problems


def test_chat_completions() -> None:
    assert refused(ChatCompletion, completions.check_completion) == []


def test_messages_requests_but_for_what_only_anthropic_can_read() -> None:
    for _, problems in refused(MessageCreateParamsNonStreaming, messages.check_request):
        for problem in problems:
            named = any(repr(kind) in problem for kind in (*REFUSED_BLOCKS, *REFUSED_SOURCES))
            assert named or "media_type" in problem, problem


def test_messages_replies_but_for_blocks_of_tools_that_anthropic_runs() -> None:
    for _, problems in refused(Message, messages.check_reply):
        assert all(any(repr(kind) in problem for kind in REFUSED_BLOCKS) for problem in problems), problems


@pytest.mark.parametrize(
    ("check", "wrong", "sentence"),
    [
        (chat.check_request, {}, "messages: is missing"),
        (chat.check_request, {"messages": "x"}, "messages: must be a list, not 'x'"),
        (chat.check_request, {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id: is missing"),
        (chat.check_request, {"messages": [], "tools": [{"function": {}}]}, "tools[0].function.name: is missing"),
        (chat.check_request, {"messages": [], "stream": True}, "stream: must be false, not true"),
        (completions.check_completion, {"choices": []}, "choices: List should have at least 1 item"),
        (completions.check_completion, {"choices": [{}]}, "choices[0].message: is missing"),
        (messages.check_request, {"messages": [{"role": "user"}]}, "messages[0].content: is missing"),
        (messages.check_request, {"messages": [], "tools": [{}]}, "tools[0].name: is missing"),
        (messages.check_reply, {"content": []}, "id: is missing"),
    ],
)
def test_a_mistake_is_told_with_its_place(check: Any, wrong: Json, sentence: str) -> None:
    with pytest.raises(WireError) as raised:
        check(wrong)
    assert any(problem.startswith(sentence) for problem in raised.value.problems), raised.value.problems
