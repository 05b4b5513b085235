"""A request of the Chat Completions dialect: what of it a model server reads, and the check at the door.

As in ``responses``, checking does not transform, and objects keep fields that are not named here. A server that is
strict refuses a request with fields that are not among ``FIELDS``.
"""

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Discriminator, Tag, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gymkit.wire.chat_messages import Message
from gymkit.wire.problems import wire_error

Settings = dict[str, Any] | None
"""An object of settings that is passed on, or read where a conversion needs it."""


class FunctionSchema(TypedDict):
    """A function that a model may call."""

    name: str
    """Name of the function."""
    description: NotRequired[str | None]
    """What the function does, for the model."""
    parameters: NotRequired[dict[str, Any] | None]
    """JSON schema of the arguments."""
    strict: NotRequired[bool | None]
    """Whether the model's arguments must follow the schema."""


class FunctionTool(TypedDict):
    """A function among the tools."""

    type: NotRequired[Literal["function"]]
    """Says which tool this is; some clients leave it out."""
    function: FunctionSchema
    """The function."""


class CustomSchema(TypedDict):
    """A tool whose input is free text."""

    name: str
    """Name of the tool."""
    description: NotRequired[str | None]
    """What the tool does, for the model."""
    format: NotRequired[dict[str, Any] | None]
    """Form of the input: any text, or that of a grammar."""


class CustomTool(TypedDict):
    """A custom tool among the tools."""

    type: Literal["custom"]
    """Says which tool this is."""
    custom: CustomSchema
    """The tool."""


class OtherTool(TypedDict):
    """A tool that only the service knows: passed on to it, and to no other dialect."""

    type: str
    """Says which tool this is."""


def _tool_tag(tool: Any) -> str | None:
    kind = tool.get("type", "function") if isinstance(tool, dict) else None
    return kind if kind in ("function", "custom") else "other" if isinstance(kind, str) else None


Tool = Annotated[
    Annotated[FunctionTool, Tag("function")]
    | Annotated[CustomTool, Tag("custom")]
    | Annotated[OtherTool, Tag("other")],
    Discriminator(_tool_tag),
]
"""A tool."""


def _choice_tag(choice: Any) -> str:
    return "tool" if isinstance(choice, dict) else "mode"


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("mode")] | Annotated[dict[str, Any], Tag("tool")],
    Discriminator(_choice_tag),
]
"""Whether a tool is called, and which."""


@with_config(ConfigDict(extra="allow"))
class Request(TypedDict):
    """A request; the fields are the Chat Completions API's and three extensions of NeMo Gym's."""

    messages: list[Message]
    """The conversation so far."""
    model: NotRequired[str | None]
    """Name of the model; servers that have one of their own ignore it."""
    tools: NotRequired[list[Tool] | None]
    """The tools that the model may call."""
    tool_choice: NotRequired[ToolChoice | None]
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
    metadata: NotRequired[dict[str, str] | None]
    """The caller's notes."""
    user: NotRequired[str | None]
    """The caller's end user."""
    safety_identifier: NotRequired[str | None]
    """The caller's end user, for abuse detection."""
    store: NotRequired[bool | None]
    """Whether the service keeps the reply."""
    service_tier: NotRequired[Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] | None]
    """The provider's processing class."""
    prompt_cache_key: NotRequired[str | None]
    """Groups requests for the provider's cache."""
    prompt_cache_retention: NotRequired[Literal["in_memory", "24h"] | None]
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
    return_token_ids: NotRequired[bool | None]
    """Whether the reply tells its token ids; an extension of vLLM's. Servers here tell them if they know them."""
    thinking: NotRequired[Settings]
    """Settings of thinking; an extension."""
    output_config: NotRequired[Settings]
    """Settings of the reply; an extension."""


FIELDS = frozenset(Request.__annotations__)
"""The fields of a request."""


@cache
def _requests() -> TypeAdapter[Request]:
    return TypeAdapter(Request)


def check_request(data: object) -> None:
    """Check that ``data`` is a request. Raises WireError with one ``path: reason`` for each of the first problems."""
    try:
        _requests().validate_python(data)
    except ValidationError as error:
        raise wire_error("the request", error, data) from None
