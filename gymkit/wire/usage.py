"""How many tokens an agent spent: reported whole or not at all."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from gymkit.wire.problems import wire_error


class InputTokensDetails(TypedDict):
    """What the input tokens were."""

    cached_tokens: int | None
    """Tokens read from a cache; null when the service does not know."""


class OutputTokensDetails(TypedDict):
    """What the output tokens were."""

    reasoning_tokens: int | None
    """Tokens spent on reasoning; null when the service does not know."""


class Usage(TypedDict):
    """Tokens of one response."""

    input_tokens: int
    """Tokens read."""
    input_tokens_details: InputTokensDetails
    """What the input tokens were."""
    output_tokens: int
    """Tokens written."""
    output_tokens_details: OutputTokensDetails
    """What the output tokens were."""
    total_tokens: int
    """Both together."""


@cache
def _usages() -> TypeAdapter[list[Usage]]:
    return TypeAdapter(list[Usage])


def _added(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def sum_usage(usages: Sequence[Mapping[str, Any]]) -> Usage | None:
    """Add up the usage of several responses.

    ``usages`` has one ``Usage`` for each response that reported any. A detail that one of them does not know is unknown
    in the sum. Returns None when there are none; raises WireError for a partial one.
    """
    try:
        reported = _usages().validate_python(list(usages))
    except ValidationError as error:
        raise wire_error("the usage", error, list(usages)) from None
    if not reported:
        return None
    return {
        "input_tokens": sum(usage["input_tokens"] for usage in reported),
        "input_tokens_details": {
            "cached_tokens": _added([usage["input_tokens_details"]["cached_tokens"] for usage in reported])
        },
        "output_tokens": sum(usage["output_tokens"] for usage in reported),
        "output_tokens_details": {
            "reasoning_tokens": _added([usage["output_tokens_details"]["reasoning_tokens"] for usage in reported])
        },
        "total_tokens": sum(usage["total_tokens"] for usage in reported),
    }
