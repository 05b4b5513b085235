"""What is decoded of a row's evidence: the facts, and of the words only those of the turns."""

from __future__ import annotations

from typing import Any

import msgspec

from gymkit.frames.rows import Stamped


class Server(msgspec.Struct, gc=False):
    """A model server."""

    name: Any = None
    """Its name."""


class Reference(msgspec.Struct, gc=False):
    """What names a model call."""

    model_call_id: Any = None
    """Id of the call."""


class Metadata(msgspec.Struct, gc=False):
    """A model call without what was said."""

    response_id: Any = None
    """Id of the response."""
    model_ref: Server | None = None
    """The server."""
    model: Any = None
    """Who answered."""
    dialect: Any = None
    """How it was asked."""
    status_code: Any = None
    """What the client got."""
    response_status: Any = None
    """What the response says of itself."""
    finish_reason: Any = None
    """Why it ended."""
    response_source: Any = None
    """The model, or somebody in its place."""
    error_category: Any = None
    """Group of failures."""
    latency_ttft_ms: Any = None
    """Time to the first token."""


class Stats(msgspec.Struct, gc=False):
    """Tokens of a model call."""

    prompt_tokens: Any = None
    """Read."""
    completion_tokens: Any = None
    """Written."""
    reasoning_tokens: Any = None
    """Written as reasoning."""
    total_tokens: Any = None
    """Both."""
    cached_tokens: Any = None
    """Read from a cache."""


class Call(msgspec.Struct, gc=False):
    """A captured call."""

    model_call_id: Any = None
    """Its id."""
    started_at: Any = None
    """When it began."""
    duration_ms: Any = None
    """How long it took."""
    response_metadata: Metadata | None = None
    """What it came to."""
    token_stats: Stats | None = None
    """What it cost."""


class Invoked(msgspec.Struct, gc=False):
    """An activation of an agent."""

    invocation_id: Any = None
    """Its name."""
    parent_invocation_id: Any = None
    """Who began it."""
    status: Any = None
    """How it ended."""
    duration_ms: Any = None
    """How long it took."""
    error_type: Any = None
    """What ended it."""
    model_calls: list[Reference] | None = None
    """Its model calls."""


class Used(msgspec.Struct, gc=False):
    """An observed tool call."""

    invocation_id: Any = None
    """Whose it was."""


class Turn(msgspec.Struct, gc=False):
    """A step."""

    invocation_id: Any = None
    """Whose step."""
    turn_no: Any = None
    """Its number."""
    timestamp: Any = None
    """When it began."""
    question: Any = None
    """What stood before the model."""
    answer: Any = None
    """What it said."""
    reasoning_content: Any = None
    """What it thought."""
    resolved: Any = None
    """Whether the task was solved by then."""
    step_count: Any = None
    """Tool calls so far."""
    model_calls: list[Reference] | None = None
    """The calls that made it."""


class Missing(msgspec.Struct, gc=False):
    """A gap."""

    code: Any = None
    """What is missing."""
    invocation_id: Any = None
    """Of which invocation."""
    detail: Any = None
    """In words."""


class Called(msgspec.Struct, gc=False):
    """A trajectory without its turns."""

    invocations: list[Invoked] | None = None
    """Who worked."""
    model_calls: list[Call] | None = None
    """What was asked of models."""
    tool_calls: list[Used] | None = None
    """What was asked of tools."""


class Told(msgspec.Struct, gc=False):
    """A trajectory's turns."""

    turns: list[Turn] | None = None
    """Step by step."""


class Holes(msgspec.Struct, gc=False):
    """What is not known."""

    gaps: list[Missing] | None = None
    """The gaps."""


class CallRow(Stamped, gc=False):
    """A result with its model calls."""

    trajectory: Called | None = msgspec.field(name="ng_trajectory", default=None)
    """The evidence."""


class TurnRow(Stamped, gc=False):
    """A result with its turns."""

    trajectory: Told | None = msgspec.field(name="ng_trajectory", default=None)
    """The evidence."""


class GapRow(Stamped, gc=False):
    """A result with what is not known of it."""

    trajectory: Holes | None = msgspec.field(name="ng_trajectory", default=None)
    """The evidence."""
    capture: Holes | None = msgspec.field(name="ng_model_call_capture", default=None)
    """The record of the model servers."""
    observations: Holes | None = msgspec.field(name="ng_agent_observations", default=None)
    """What the agent saw."""
