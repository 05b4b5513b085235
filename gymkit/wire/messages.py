"""The Anthropic Messages dialect: what of its request and reply a model server reads, and the checks at the door.

A request is open: what is not named here is not read, and the conversion reports it. The blocks of its content are
closed: one that the model behind could not be shown is refused, since a conversation with a hole would be scored.
"""

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gymkit.wire.problems import wire_error


class Text(TypedDict):
    """Text."""

    type: Literal["text"]
    """Says which block this is."""
    text: str
    """The text."""


class EncodedImage(TypedDict):
    """An image in the request itself."""

    type: Literal["base64"]
    """Says which source this is."""
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    """Its format."""
    data: str
    """The image, base64."""


class LinkedImage(TypedDict):
    """An image elsewhere."""

    type: Literal["url"]
    """Says which source this is."""
    url: str
    """Its address."""


class Image(TypedDict):
    """An image."""

    type: Literal["image"]
    """Says which block this is."""
    source: Annotated[EncodedImage | LinkedImage, Field(discriminator="type")]
    """The image."""


class EncodedDocument(TypedDict):
    """A PDF in the request itself."""

    type: Literal["base64"]
    """Says which source this is."""
    media_type: str
    """Its format."""
    data: str
    """The document, base64."""


class LinkedDocument(TypedDict):
    """A PDF elsewhere."""

    type: Literal["url"]
    """Says which source this is."""
    url: str
    """Its address."""


class PlainDocument(TypedDict):
    """A text as a document."""

    type: Literal["text"]
    """Says which source this is."""
    data: str
    """The text."""


class Document(TypedDict):
    """A document."""

    type: Literal["document"]
    """Says which block this is."""
    source: Annotated[EncodedDocument | LinkedDocument | PlainDocument, Field(discriminator="type")]
    """The document."""
    title: NotRequired[str | None]
    """Its title."""


class ToolUse(TypedDict):
    """A model's wish to have a tool run."""

    type: Literal["tool_use"]
    """Says which block this is."""
    id: str
    """Joins the call with its result."""
    name: str
    """Name of the tool."""
    input: dict[str, Any]
    """The arguments."""


class ToolResult(TypedDict):
    """What a tool returned."""

    type: Literal["tool_result"]
    """Says which block this is."""
    tool_use_id: str
    """Joins the result with its call."""
    content: NotRequired[Annotated[str | list["ResultBlock"] | None, Field(union_mode="left_to_right")]]
    """The result."""
    is_error: NotRequired[bool | None]
    """Whether the tool failed."""


class Thinking(TypedDict):
    """What a model thought first."""

    type: Literal["thinking"]
    """Says which block this is."""
    thinking: str
    """The thoughts, perhaps left out."""
    signature: NotRequired[str | None]
    """The thoughts in a form that only the provider reads."""


class RedactedThinking(TypedDict):
    """Thoughts that only the provider reads."""

    type: Literal["redacted_thinking"]
    """Says which block this is."""
    data: str
    """The thoughts."""


ResultBlock = Annotated[Text | Image | Document, Field(discriminator="type")]
"""A block of a tool's result."""

Block = Annotated[
    Text | Image | Document | ToolUse | ToolResult | Thinking | RedactedThinking, Field(discriminator="type")
]
"""A block of a message."""


class Turn(TypedDict):
    """A message of a request."""

    role: Literal["user", "assistant", "system"]
    """Who speaks."""
    content: Annotated[str | list[Block], Field(union_mode="left_to_right")]
    """What is said."""


class CustomTool(TypedDict):
    """A tool that the caller runs."""

    type: NotRequired[Literal["custom"] | None]
    """Says which tool this is; may be left out."""
    name: str
    """Name of the tool."""
    description: NotRequired[str | None]
    """What the tool does, for the model."""
    input_schema: NotRequired[dict[str, Any] | None]
    """JSON schema of the arguments."""
    strict: NotRequired[bool | None]
    """Whether the model's arguments must follow the schema."""


class HostedTool(TypedDict):
    """A tool that Anthropic runs."""

    type: str
    """Says which tool this is."""


def _tool_tag(tool: Any) -> str | None:
    kind = tool.get("type") if isinstance(tool, dict) else 0
    return "custom" if kind in (None, "custom") else "hosted" if isinstance(kind, str) else None


Tool = Annotated[
    Annotated[CustomTool, Tag("custom")] | Annotated[HostedTool, Tag("hosted")],
    Discriminator(_tool_tag),
]
"""A tool."""


class ToolChoice(TypedDict):
    """Whether a tool is called, and which."""

    type: str
    """``auto``, ``any``, ``none``, or ``tool`` with a name."""
    name: NotRequired[str]
    """Name of the tool."""
    disable_parallel_tool_use: NotRequired[bool | None]
    """Whether one tool is called at most."""


class OutputConfig(TypedDict):
    """Effort and form of the reply."""

    effort: NotRequired[str | None]
    """How hard the model tries."""
    format: NotRequired[dict[str, Any] | None]
    """Form of the reply: JSON of a schema."""


@with_config(ConfigDict(extra="allow"))
class Request(TypedDict):
    """A request."""

    messages: list[Turn]
    """The conversation so far."""
    max_tokens: NotRequired[int]
    """Bound on the tokens written."""
    model: NotRequired[str | None]
    """Name of the model; servers that have one of their own ignore it."""
    system: NotRequired[Annotated[str | list[Text] | None, Field(union_mode="left_to_right")]]
    """A system message."""
    tools: NotRequired[list[Tool] | None]
    """The tools that the model may call."""
    tool_choice: NotRequired[ToolChoice | None]
    """Whether a tool is called, and which."""
    temperature: NotRequired[float | None]
    """Sampling temperature."""
    top_p: NotRequired[float | None]
    """Share of probability that is sampled from."""
    stop_sequences: NotRequired[list[str] | None]
    """Texts that end the reply."""
    output_config: NotRequired[OutputConfig | None]
    """Effort and form of the reply."""


StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]
"""Why a reply of ours ended."""


@with_config(ConfigDict(extra="allow"))
class Reply(TypedDict):
    """A reply."""

    id: str
    """Id of the reply."""
    type: Literal["message"]
    """Says what this object is."""
    role: Literal["assistant"]
    """Who speaks."""
    model: str
    """Name of the model."""
    content: list[Annotated[Text | ToolUse | Thinking | RedactedThinking, Field(discriminator="type")]]
    """The blocks, in order."""
    stop_reason: NotRequired[str | None]
    """Why it ended, one of ``StopReason`` or a word of the server's own."""
    stop_sequence: NotRequired[str | None]
    """Which text ended it."""
    usage: NotRequired[dict[str, Any] | None]
    """Tokens spent; reads from and writes to a cache are counted apart from ``input_tokens``."""


@cache
def _requests() -> TypeAdapter[Request]:
    return TypeAdapter(Request)


@cache
def _replies() -> TypeAdapter[Reply]:
    return TypeAdapter(Reply)


def check_request(data: object) -> None:
    """Check that ``data`` is a request. Raises WireError with one ``path: reason`` for each of the first problems."""
    try:
        _requests().validate_python(data)
    except ValidationError as error:
        raise wire_error("the request", error, data) from None


def check_reply(data: object) -> None:
    """Check that ``data`` is a reply. Raises WireError like ``check_request``."""
    try:
        _replies().validate_python(data)
    except ValidationError as error:
        raise wire_error("the message", error, data) from None
