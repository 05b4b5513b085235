"""A reply of the Chat Completions dialect: what of it a model server reads, and the check of it."""

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gymkit.wire.chat_messages import AssistantMessage
from gymkit.wire.problems import wire_error

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]
"""Why a choice ended; other servers' words are taken too."""


class TopLogprob(TypedDict):
    """One token that the model might have written at a position."""

    token: str
    """The token as text."""
    logprob: float
    """Natural logarithm of the token's probability."""
    bytes: NotRequired[list[int] | None]
    """The token as UTF-8 bytes."""


class Logprob(TopLogprob):
    """The token that the model wrote at a position, and its rivals."""

    top_logprobs: NotRequired[list[TopLogprob] | None]
    """The likeliest tokens at this position."""


class Logprobs(TypedDict):
    """Probabilities of the tokens of a reply."""

    content: NotRequired[list[Logprob] | None]
    """Of what it says."""
    refusal: NotRequired[list[Logprob] | None]
    """Of its refusal."""


class Choice(TypedDict):
    """One reply of possibly several."""

    message: AssistantMessage
    """The reply."""
    index: NotRequired[int]
    """Position among the choices."""
    finish_reason: NotRequired[str | None]
    """Why it ended, one of ``FinishReason`` or a word of the server's own."""
    logprobs: NotRequired[Logprobs | None]
    """Probabilities of the tokens."""


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
    usage: NotRequired[dict[str, Any] | None]
    """Tokens spent."""


@cache
def _completions() -> TypeAdapter[Completion]:
    return TypeAdapter(Completion)


def check_completion(data: object) -> None:
    """Check that ``data`` is a reply. Raises WireError with one ``path: reason`` for each of the first problems."""
    try:
        _completions().validate_python(data)
    except ValidationError as error:
        raise wire_error("the chat completion", error, data) from None
