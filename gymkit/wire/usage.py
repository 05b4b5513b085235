"""How many tokens an agent spent: reported whole or not at all."""

from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import TypedDict


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


def _added(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def sum_usage(usages: Iterable[Mapping[str, Any]]) -> Usage | None:
    """Add up the usage of several responses.

    ``usages`` are valid ``Usage`` objects, one for each response that reported any. A detail that one of them does not
    know is unknown in the sum. Returns None when there are none.
    """
    reported = list(usages)
    if not reported:
        return None
    return {
        "input_tokens": sum(usage["input_tokens"] for usage in reported),
        "input_tokens_details": {
            "cached_tokens": _added(usage["input_tokens_details"]["cached_tokens"] for usage in reported)
        },
        "output_tokens": sum(usage["output_tokens"] for usage in reported),
        "output_tokens_details": {
            "reasoning_tokens": _added(usage["output_tokens_details"]["reasoning_tokens"] for usage in reported)
        },
        "total_tokens": sum(usage["total_tokens"] for usage in reported),
    }
