"""The Responses API's request and response, and the checks at the door.

Checking does not transform: whoever calls ``check_response`` or ``check_request`` goes on with the dict it had, unknown
fields included. What has to be there and of which type follows the Responses API; what NeMo Gym adds to it is accepted
too (messages to the agent and function call outputs in ``output``).
"""

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gymkit.wire.items import InputItem, OutputItem
from gymkit.wire.problems import wire_error
from gymkit.wire.tools import Tool, ToolChoice
from gymkit.wire.usage import Usage, sum_usage

__all__ = [
    "Request",
    "Response",
    "Usage",
    "check_request",
    "check_response",
    "message_text",
    "sum_usage",
    "unpaired_calls",
]

Settings = dict[str, Any] | None
"""An object of settings that is passed on and not read here."""


class Failure(TypedDict):
    """Why a response failed on the service's side."""

    code: str
    """Short name of the cause."""
    message: str
    """The cause in words."""
    param: NotRequired[str | None]
    """Field of the request that caused it."""
    type: NotRequired[str | None]
    """Kind of the cause."""


class IncompleteDetails(TypedDict):
    """Why a response stopped early."""

    reason: NotRequired[Literal["max_output_tokens", "max_messages", "content_filter", "steered"] | None]
    """The cause."""


@with_config(ConfigDict(extra="allow"))
class Response(TypedDict):
    """One answer of an agent or a model: what it did and what it wants next."""

    id: str
    """Id of the response."""
    object: Literal["response"]
    """Says what this object is."""
    created_at: float
    """Seconds since 1970."""
    model: str
    """Name of the model or the agent."""
    output: list[OutputItem]
    """The items, in the order they came about."""
    parallel_tool_calls: bool
    """Whether the model may call several tools at once."""
    tool_choice: ToolChoice
    """Whether a tool is called, and which."""
    tools: list[Tool]
    """The tools that were declared."""
    usage: NotRequired[Usage | None]
    """Tokens spent; reported whole or not at all."""
    incomplete_details: NotRequired[IncompleteDetails | None]
    """Set when the response stopped early."""
    error: NotRequired[Failure | None]
    """Set when the response failed."""
    status: NotRequired[Literal["completed", "failed", "in_progress", "cancelled", "queued", "incomplete"] | None]
    """How far the response has come."""
    instructions: NotRequired[Annotated[str | list[InputItem] | None, Field(union_mode="left_to_right")]]
    """The system message of this response."""
    metadata: NotRequired[dict[str, str] | None]
    """The caller's notes."""
    temperature: NotRequired[float | None]
    """Sampling temperature."""
    top_p: NotRequired[float | None]
    """Share of probability that is sampled from."""
    top_logprobs: NotRequired[int | None]
    """Rivals reported for each token."""
    max_output_tokens: NotRequired[int | None]
    """Bound on the tokens written."""
    max_tool_calls: NotRequired[int | None]
    """Bound on the calls of hosted tools."""
    previous_response_id: NotRequired[str | None]
    """Id of the response that this one continues."""
    background: NotRequired[bool | None]
    """Whether the service answered later."""
    completed_at: NotRequired[float | None]
    """Seconds since 1970."""
    service_tier: NotRequired[Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] | None]
    """The provider's processing class."""
    truncation: NotRequired[Literal["auto", "disabled"] | None]
    """What happens to an input that is too long."""
    prompt_cache_key: NotRequired[str | None]
    """Groups requests for the provider's cache."""
    prompt_cache_retention: NotRequired[Literal["in_memory", "24h"] | None]
    """How long the provider caches."""
    safety_identifier: NotRequired[str | None]
    """The caller's end user, for abuse detection."""
    user: NotRequired[str | None]
    """The caller's end user."""
    reasoning: NotRequired[Settings]
    """Settings of the reasoning."""
    text: NotRequired[Settings]
    """Settings of the text."""
    prompt: NotRequired[Settings]
    """A stored prompt and its variables."""
    conversation: NotRequired[Settings]
    """The stored conversation that this response belongs to."""


@with_config(ConfigDict(extra="allow"))
class Request(TypedDict):
    """What an agent or a model is asked: in a task row, ``responses_create_params``."""

    input: Annotated[str | list[InputItem], Field(union_mode="left_to_right")]
    """The conversation so far."""
    tools: NotRequired[list[Tool]]
    """The tools that the agent may ask for."""
    tool_choice: NotRequired[ToolChoice]
    """Whether a tool is called, and which."""
    parallel_tool_calls: NotRequired[bool | None]
    """Whether several tools may be called at once."""
    instructions: NotRequired[str | None]
    """A system message."""
    model: NotRequired[str | None]
    """Name of the model; servers that have one of their own ignore it."""
    metadata: NotRequired[dict[str, str] | None]
    """The caller's notes."""
    temperature: NotRequired[float | None]
    """Sampling temperature."""
    top_p: NotRequired[float | None]
    """Share of probability that is sampled from."""
    top_logprobs: NotRequired[int | None]
    """Rivals reported for each token."""
    max_output_tokens: NotRequired[int | None]
    """Bound on the tokens written."""
    max_tool_calls: NotRequired[int | None]
    """Bound on the calls of hosted tools."""
    previous_response_id: NotRequired[str | None]
    """Id of a stored response to continue."""
    include: NotRequired[list[str] | None]
    """Extra output to report."""
    background: NotRequired[bool | None]
    """Whether the service may answer later."""
    store: NotRequired[bool | None]
    """Whether the service keeps the response."""
    stream: NotRequired[Literal[False] | None]
    """Never true: a rollout is driven by whole responses."""
    service_tier: NotRequired[Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] | None]
    """The provider's processing class."""
    truncation: NotRequired[Literal["auto", "disabled"] | None]
    """What happens to an input that is too long."""
    prompt_cache_key: NotRequired[str | None]
    """Groups requests for the provider's cache."""
    prompt_cache_retention: NotRequired[Literal["in_memory", "24h"] | None]
    """How long the provider caches."""
    safety_identifier: NotRequired[str | None]
    """The caller's end user, for abuse detection."""
    user: NotRequired[str | None]
    """The caller's end user."""
    conversation: NotRequired[str | dict[str, Any] | None]
    """A stored conversation to continue."""
    reasoning: NotRequired[Settings]
    """Settings of the reasoning."""
    text: NotRequired[Settings]
    """Settings of the text."""
    prompt: NotRequired[Settings]
    """A stored prompt and its variables."""
    stream_options: NotRequired[Settings]
    """Settings of streaming."""


@cache
def _responses() -> TypeAdapter[Response]:
    return TypeAdapter(Response)


@cache
def _requests() -> TypeAdapter[Request]:
    return TypeAdapter(Request)


def check_response(data: object) -> Usage | None:
    """Check that ``data`` is a valid Response and return its usage, None when it reports none.

    Raises WireError with one ``path: reason`` for each of the first problems.
    """
    try:
        return _responses().validate_python(data).get("usage")
    except ValidationError as error:
        raise wire_error("the Response", error, data) from None


def check_request(data: object) -> None:
    """Check that ``data`` can be sent as a request. Raises WireError like ``check_response``."""
    try:
        _requests().validate_python(data)
    except ValidationError as error:
        raise wire_error("the request", error, data) from None


def message_text(item: dict[str, Any]) -> str:
    """Return the text of a message item, refusals included, its parts joined without a separator.

    Takes any shape of content: text, a list of parts, or nothing; parts without text count as empty.
    """
    return content_text(item.get("content"))


def content_text(content: Any) -> str:
    """The same of the content alone."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(map(_part_text, content))


def _part_text(part: Any) -> str:
    text = part.get("text", part.get("refusal")) if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


def unpaired_calls(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the ``function_call`` items of one response's ``output`` that have no output there, in order.

    They are what the agent asks to have run; a call with its output beside it is the agent's own record.
    """
    answered = {item["call_id"] for item in output if item["type"] == "function_call_output"}
    return [item for item in output if item["type"] == "function_call" and item["call_id"] not in answered]
