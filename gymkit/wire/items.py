"""The items of a conversation: messages, function calls with their outputs, reasoning, and hosted tools' records.

``OutputItem`` is what stands in a response's ``output``, ``InputItem`` what stands in a request's ``input``. Both take
messages to the agent and function call outputs, because an agent may return the whole trajectory in one response.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypedDict

from gymkit.wire.parts import InputPart, OutputPart, ReasoningText, ResultPart, SummaryText

ItemStatus = Literal["in_progress", "completed", "incomplete"]
"""How far an item has come."""


class InputMessage(TypedDict):
    """A message to an agent, or an earlier answer of it retold as plain text."""

    type: NotRequired[Literal["message"] | None]
    """Says which item this is; may be left out in a request, not in a response."""
    role: Literal["user", "assistant", "system", "developer"]
    """Who speaks."""
    content: Annotated[str | list[InputPart], Field(union_mode="left_to_right")]
    """What is said."""
    phase: NotRequired[Literal["commentary", "final_answer"] | None]
    """Whether an assistant's message is a remark on the way or its answer."""


class OutputMessage(TypedDict):
    """A message that an agent wrote."""

    type: NotRequired[Literal["message"] | None]
    """Says which item this is; may be left out in a request, not in a response."""
    id: str
    """Id of the message."""
    role: Literal["assistant"]
    """Who speaks."""
    content: list[OutputPart]
    """What is said."""
    status: NotRequired[ItemStatus]
    """How far the message has come; absent means completed."""
    phase: NotRequired[Literal["commentary", "final_answer"] | None]
    """Whether this is a remark on the way or the answer."""


class FunctionCall(TypedDict):
    """An agent's wish to have a function run, or the record of a function that it ran itself."""

    type: Literal["function_call"]
    """Says which item this is."""
    call_id: str
    """Joins the call with its output."""
    name: str
    """Name of the function."""
    arguments: str
    """The arguments: a JSON object as text, perhaps malformed."""
    id: NotRequired[str | None]
    """Id of the item."""
    namespace: NotRequired[str | None]
    """Group of tools that the name belongs to."""
    status: NotRequired[ItemStatus | None]
    """How far the call has come."""


class FunctionCallOutput(TypedDict):
    """What a function returned."""

    type: Literal["function_call_output"]
    """Says which item this is."""
    call_id: str
    """Joins the output with its call."""
    output: Annotated[str | list[ResultPart], Field(union_mode="left_to_right")]
    """The result: text (JSON as often as not) or parts."""
    id: NotRequired[str | None]
    """Id of the item."""
    name: NotRequired[str | None]
    """Name of the function."""
    namespace: NotRequired[str | None]
    """Group of tools that the name belongs to."""
    status: NotRequired[ItemStatus | None]
    """How far the output has come."""


class Reasoning(TypedDict):
    """What an agent thought before it wrote or called."""

    type: Literal["reasoning"]
    """Says which item this is."""
    id: str
    """Id of the item."""
    summary: list[SummaryText]
    """Summaries; empty when there are none."""
    content: NotRequired[list[ReasoningText] | None]
    """The reasoning itself."""
    encrypted_content: NotRequired[str | None]
    """The reasoning in a form that only the provider reads."""
    status: NotRequired[ItemStatus | None]
    """How far the reasoning has come."""


class HostedItem(TypedDict):
    """A record of a tool that the agent's provider runs: kept as it is, checked no further than this.

    The shapes behind these types change with each release of the Responses API, and nothing here reads them.
    """

    type: str
    """One of ``HOSTED_OUTPUTS`` or ``HOSTED_INPUTS``."""
    id: NotRequired[str | None]
    """Id of the item."""


HOSTED_OUTPUTS = frozenset(
    {
        "additional_tools",
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "computer_call",
        "computer_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
"""Types of hosted items that a response may hold."""

HOSTED_INPUTS = HOSTED_OUTPUTS | {"compaction_trigger", "configuration_update", "item_reference"}
"""Types of hosted items that a request may hold."""

_WRITTEN = ("output_text", "refusal")


def _message_tag(item: dict[str, Any]) -> str:
    content = item.get("content")
    first = content[0] if isinstance(content, list) and content else None
    return "output_message" if isinstance(first, dict) and first.get("type") in _WRITTEN else "input_message"


def _output_tag(item: Any) -> str | None:
    kind = item.get("type") if isinstance(item, dict) else None
    if kind == "message":
        return _message_tag(item)
    if not isinstance(kind, str):
        return None
    return "hosted" if kind in HOSTED_OUTPUTS else kind


def _input_tag(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    kind = item.get("type")
    if kind is None or kind == "message":
        return _message_tag(item)
    if not isinstance(kind, str):
        return None
    return "hosted" if kind in HOSTED_INPUTS else kind


_AnyItem = (
    Annotated[InputMessage, Tag("input_message")]
    | Annotated[OutputMessage, Tag("output_message")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionCallOutput, Tag("function_call_output")]
    | Annotated[Reasoning, Tag("reasoning")]
    | Annotated[HostedItem, Tag("hosted")]
)

OutputItem = Annotated[_AnyItem, Discriminator(_output_tag)]
"""An item of a response's ``output``; it must say its ``type``."""

InputItem = Annotated[_AnyItem, Discriminator(_input_tag)]
"""An item of a request's ``input``; without a ``type`` it is a message."""
