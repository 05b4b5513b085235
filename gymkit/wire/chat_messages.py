"""The messages of the Chat Completions dialect, in a request's history and as a reply."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypedDict


class Text(TypedDict):
    """Text."""

    type: Literal["text"]
    """Says which part this is."""
    text: str
    """The text."""


class Refusal(TypedDict):
    """A model's words for not doing what it was asked."""

    type: Literal["refusal"]
    """Says which part this is."""
    refusal: str
    """The words."""


class ImageUrl(TypedDict):
    """Where an image is."""

    url: str
    """Address or data URL."""
    detail: NotRequired[str | None]
    """How closely the model shall look."""


class Image(TypedDict):
    """An image."""

    type: Literal["image_url"]
    """Says which part this is."""
    image_url: ImageUrl
    """The image."""


class OtherPart(TypedDict):
    """A file, a sound or a video."""

    type: Literal["file", "input_audio", "video_url"]
    """Says which part this is, and under which key it lies."""


Part = Annotated[Text | Refusal | Image | OtherPart, Field(discriminator="type")]
"""A part of a message."""

Content = Annotated[str | list[Part], Field(union_mode="left_to_right")]
"""What a message says."""


class Function(TypedDict):
    """A function and its arguments."""

    name: str
    """Name of the function."""
    arguments: str
    """A JSON object as text, perhaps malformed."""


class FunctionCall(TypedDict):
    """A model's wish to have a function run."""

    type: NotRequired[Literal["function"]]
    """Says which call this is; some servers leave it out."""
    id: str
    """Joins the call with its result."""
    function: Function
    """The function."""


class Custom(TypedDict):
    """A custom tool and its input."""

    name: str
    """Name of the tool."""
    input: str
    """Free text."""


class CustomCall(TypedDict):
    """A model's wish to have a custom tool run."""

    type: Literal["custom"]
    """Says which call this is."""
    id: str
    """Joins the call with its result."""
    custom: Custom
    """The tool."""


def _call_tag(call: Any) -> str:
    return "custom" if isinstance(call, dict) and call.get("type") == "custom" else "function"


ToolCall = Annotated[
    Annotated[FunctionCall, Tag("function")] | Annotated[CustomCall, Tag("custom")], Discriminator(_call_tag)
]
"""A call of a tool."""


class AssistantMessage(TypedDict):
    """What a model said, in a request's history or as a reply."""

    role: Literal["assistant"]
    """Who speaks."""
    content: NotRequired[Annotated[str | list[Part] | None, Field(union_mode="left_to_right")]]
    """What it said; null when it only called tools."""
    refusal: NotRequired[str | None]
    """Its words for not doing what it was asked."""
    tool_calls: NotRequired[list[ToolCall] | None]
    """The tools it called."""
    reasoning_content: NotRequired[str | None]
    """What it thought first; vLLM's and others' field, which OpenAI does not have."""
    reasoning: NotRequired[str | None]
    """The same under its newer name."""
    name: NotRequired[str | None]
    """Tells speakers of one role apart."""
    annotations: NotRequired[list[dict[str, Any]] | None]
    """Citations in the text."""
    prompt_token_ids: NotRequired[list[int] | None]
    """The prompt as the model read it; NeMo Gym's field, as the two below: all three or none."""
    generation_token_ids: NotRequired[list[int] | None]
    """What it wrote."""
    generation_log_probs: NotRequired[list[float] | None]
    """Natural logarithm of each written token's probability."""


class OtherMessage(TypedDict):
    """A message to the model."""

    role: Literal["system", "developer", "user"]
    """Who speaks."""
    content: Content
    """What is said."""
    name: NotRequired[str | None]
    """Tells speakers of one role apart."""


class ToolMessage(TypedDict):
    """What a tool returned."""

    role: Literal["tool"]
    """Who speaks."""
    tool_call_id: str
    """Joins the result with its call."""
    content: Content
    """The result."""


Message = Annotated[AssistantMessage | OtherMessage | ToolMessage, Field(discriminator="role")]
"""A message of a request."""
