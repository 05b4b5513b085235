"""The Chat Completions dialect: what of its request and reply a model server reads, and the checks at the door.

As in ``responses``, checking does not transform, and objects keep fields that are not named here. A server that is
strict refuses a request with fields that are not among ``FIELDS``.
"""

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gymkit.wire.problems import wire_error

Settings = dict[str, Any] | None
"""An object of settings that is passed on, or read where a conversion needs it."""


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


@with_config(ConfigDict(extra="allow"))
class Request(TypedDict):
    """A request; the fields are the Chat Completions API's and three extensions of NeMo Gym's."""

    messages: list[Message]
    """The conversation so far."""
    model: NotRequired[str | None]
    """Name of the model; servers that have one of their own ignore it."""
    tools: NotRequired[list[dict[str, Any]] | None]
    """The tools that the model may call."""
    tool_choice: NotRequired[str | dict[str, Any] | None]
    """Whether a tool is called, and which."""
    parallel_tool_calls: NotRequired[bool | None]
    """Whether several tools may be called at once."""
    temperature: NotRequired[float | None]
    """Sampling temperature."""
    top_p: NotRequired[float | None]
    """Share of probability that is sampled from."""
    frequency_penalty: NotRequired[float | None]
    """Penalty on tokens by how often they came."""
    presence_penalty: NotRequired[float | None]
    """Penalty on tokens that came."""
    logit_bias: NotRequired[dict[str, float] | None]
    """Added to the logits of tokens."""
    seed: NotRequired[int | None]
    """Seed of the sampling."""
    n: NotRequired[int | None]
    """Number of choices."""
    stop: NotRequired[str | list[str] | None]
    """Texts that end the reply."""
    max_completion_tokens: NotRequired[int | None]
    """Bound on the tokens written."""
    max_tokens: NotRequired[int | None]
    """The same under its older name."""
    logprobs: NotRequired[bool | None]
    """Whether to report probabilities of the tokens."""
    top_logprobs: NotRequired[int | None]
    """Rivals reported for each token."""
    response_format: NotRequired[Settings]
    """Form of the reply: text, JSON, or JSON of a schema."""
    reasoning_effort: NotRequired[str | None]
    """How long the model thinks."""
    verbosity: NotRequired[str | None]
    """How long the reply is."""
    metadata: NotRequired[dict[str, Any] | None]
    """The caller's notes."""
    user: NotRequired[str | None]
    """The caller's end user."""
    safety_identifier: NotRequired[str | None]
    """The caller's end user, for abuse detection."""
    store: NotRequired[bool | None]
    """Whether the service keeps the reply."""
    service_tier: NotRequired[str | None]
    """The provider's processing class."""
    prompt_cache_key: NotRequired[str | None]
    """Groups requests for the provider's cache."""
    prompt_cache_retention: NotRequired[str | None]
    """How long the provider caches."""
    stream: NotRequired[Literal[False] | None]
    """Never true here: a client that streams is served from the whole reply."""
    stream_options: NotRequired[Settings]
    """Settings of streaming."""
    audio: NotRequired[Settings]
    """Settings of spoken replies."""
    modalities: NotRequired[list[str] | None]
    """Kinds of reply."""
    prediction: NotRequired[Settings]
    """Text that the reply will largely repeat."""
    web_search_options: NotRequired[Settings]
    """Settings of the provider's web search."""
    chat_template_kwargs: NotRequired[Settings]
    """Arguments of the chat template; an extension."""
    thinking: NotRequired[Settings]
    """Settings of thinking; an extension."""
    output_config: NotRequired[Settings]
    """Settings of the reply; an extension."""


FIELDS = frozenset(Request.__annotations__)
"""The fields of a request."""

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]
"""Why a choice ended; other servers' words are taken too."""


class Choice(TypedDict):
    """One reply of possibly several."""

    message: AssistantMessage
    """The reply."""
    index: NotRequired[int]
    """Position among the choices."""
    finish_reason: NotRequired[str | None]
    """Why it ended, one of ``FinishReason`` or a word of the server's own."""
    logprobs: NotRequired[Settings]
    """Probabilities of the tokens of text, under ``content`` and ``refusal``."""


@with_config(ConfigDict(extra="allow"))
class Completion(TypedDict):
    """A reply."""

    choices: Annotated[list[Choice], Field(min_length=1)]
    """The choices, one unless more were asked for."""
    id: NotRequired[str | None]
    """Id of the reply."""
    object: NotRequired[str | None]
    """Says what this object is."""
    created: NotRequired[float | None]
    """Seconds since 1970."""
    model: NotRequired[str | None]
    """Name of the model."""
    usage: NotRequired[Settings]
    """Tokens spent."""


@cache
def _requests() -> TypeAdapter[Request]:
    return TypeAdapter(Request)


@cache
def _completions() -> TypeAdapter[Completion]:
    return TypeAdapter(Completion)


def check_request(data: object) -> None:
    """Check that ``data`` is a request. Raises WireError with one ``path: reason`` for each of the first problems."""
    try:
        _requests().validate_python(data)
    except ValidationError as error:
        raise wire_error("the request", error, data) from None


def check_completion(data: object) -> None:
    """Check that ``data`` is a reply. Raises WireError like ``check_request``."""
    try:
        _completions().validate_python(data)
    except ValidationError as error:
        raise wire_error("the chat completion", error, data) from None
