"""The evidence of a rollout on its row: ``ng_model_call_capture``, ``ng_trajectory`` and ``ng_perf``.

``TrajectoryRecord`` is what a producer may send and what the collector writes; the others are typed dicts to read by.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypedDict

from gymkit.wire.observations import AgentInvocation, Gap, ModelCallRef, ModelRef, Strict, ToolCall, check_invocations
from gymkit.wire.problems import wire_error

SCHEMA_VERSION: Final = "1.0"

CAPTURE: Final = "ng_model_call_capture"
OBSERVATIONS: Final = "ng_agent_observations"
TRAJECTORY: Final = "ng_trajectory"
PERF: Final = "ng_perf"


class Turn(Strict):
    """One step of an invocation: what stood before the model, and what it answered."""

    invocation_id: str
    """Whose turn."""
    task_id: str
    """The task."""
    rollout_id: str
    """The rollout's capture key."""
    turn_no: int = Field(ge=1)
    """Number within the invocation, from 1."""
    timestamp: float | None = None
    """Unix seconds when it began."""
    question: str | None = None
    """The last thing that the model was given: a message, or a tool's output."""
    answer: str | None = None
    """What it said."""
    reasoning_content: str | None = None
    """What it thought."""
    resolved: bool | None = None
    """Whether the task was solved by then; null where nobody looked."""
    step_count: int | None = Field(None, ge=0)
    """Tool calls of the invocation so far, this turn's included."""
    model_calls: list[ModelCallRef] = Field(default_factory=list)
    """The calls that made it."""


class ResponseMetadata(Strict):
    """A model call without what was said."""

    response_id: str | None = None
    """Id of the response."""
    model_ref: ModelRef | None = None
    """The server that was called."""
    model: str | None = None
    """Name of the model that answered."""
    dialect: str | None = None
    """``responses``, ``chat`` or ``messages``."""
    status_code: int | None = None
    """What the client got."""
    response_status: str | None = None
    """What the response says of itself."""
    finish_reason: str | None = None
    """Why the model stopped, in the dialect's word."""
    upstream_attempted: bool | None = None
    """Whether the model was asked."""
    response_source: str | None = None
    """``upstream`` or ``local``."""
    upstream_status_code: int | None = None
    """What the model's own server answered."""
    local_response_reason: str | None = None
    """Why a reply was made in the model's place."""
    error_category: str | None = None
    """Group of failures."""
    latency_ttft_ms: float | None = None
    """Milliseconds to the first token."""


class TokenStats(Strict):
    """Tokens of a model call; null where it did not report them."""

    prompt_tokens: int | None = None
    """Read."""
    completion_tokens: int | None = None
    """Written."""
    reasoning_tokens: int | None = None
    """Written as reasoning."""
    total_tokens: int | None = None
    """Both."""
    cached_tokens: int | None = None
    """Read from a cache."""


class TrajectoryModelCall(Strict):
    """One captured call with its bodies."""

    model_call_id: str | None = None
    """Id that the model server gave it."""
    started_at: float | None = None
    """Unix seconds."""
    completed_at: float | None = None
    """Unix seconds."""
    duration_ms: float | None = None
    """Wall clock."""
    request: Any = None
    """What the client sent."""
    response: Any = None
    """What it got."""
    response_metadata: ResponseMetadata = ResponseMetadata()
    """Everything but the words."""
    token_stats: TokenStats = TokenStats()
    """Its tokens."""


class TrajectoryToolCall(ToolCall):
    """A tool call and what came back."""

    output: str | None = None
    """The tool's output as the agent was given it."""


class TrajectoryRecord(Strict):
    """A rollout, taken apart."""

    schema_version: Literal["1.0"] = "1.0"
    """Version of this schema."""
    task_id: str
    """The task."""
    rollout_id: str
    """The rollout's capture key."""
    invocations: list[AgentInvocation] = Field(default_factory=list)
    """Who worked on it."""
    turns: list[Turn] = Field(default_factory=list)
    """Step by step."""
    model_calls: list[TrajectoryModelCall] = Field(default_factory=list)
    """Every captured call, whoever made it."""
    tool_calls: list[TrajectoryToolCall] = Field(default_factory=list)
    """Every observed tool call."""
    gaps: list[Gap] = Field(default_factory=list)
    """What is not known."""

    @model_validator(mode="after")
    def _numbered(self) -> Self:
        check_invocations(self.invocations)
        numbers = [(turn.invocation_id, turn.turn_no) for turn in self.turns]
        if len(set(numbers)) != len(numbers):
            raise ValueError("a turn_no comes twice in one invocation")
        return self


class CallEntry(TypedDict, total=False):
    """One call in ``ng_model_call_capture``."""

    model_call_id: str | None
    """Id that the model server gave it."""
    response_id: str | None
    """Id of the response."""
    client_session_id: str | None
    """The client's own name for its session."""
    call_index: int
    """Order of recording, from 0; says nothing of causes."""
    model_ref: dict[str, Any] | None
    """The server that was called."""
    model: str | None
    """Name of the model that answered."""
    dialect: str | None
    """The client's dialect."""
    status_code: int | None
    """What the client got."""
    response_status: str | None
    """What the response says of itself."""
    finish_reason: str | None
    """Why the model stopped."""
    upstream_attempted: bool | None
    """Whether the model was asked."""
    response_source: str | None
    """``upstream`` or ``local``."""
    upstream_status_code: int | None
    """What the model's own server answered."""
    local_response_reason: str | None
    """Why a reply was made in the model's place."""
    started_at: float | None
    """Unix seconds."""
    completed_at: float | None
    """Unix seconds."""
    tokens_in: int | None
    """Tokens read, cached ones included."""
    tokens_out: int | None
    """Tokens written."""
    tokens_reasoning: int | None
    """Tokens written as reasoning."""
    tokens_total: int | None
    """Both."""
    tool_calls: list[dict[str, Any]]
    """What the model asked for: ``call_id``, ``name``, ``arguments``."""
    reasoning_content: str | None
    """What it thought."""
    cache_hit: bool | None
    """Whether any token came from a cache; null where that is not known."""
    cached_tokens: int | None
    """Tokens read from a cache."""
    cache_creation_tokens: int | None
    """Tokens written to a cache."""
    error_category: str | None
    """Group of failures."""
    latency_total_ms: float | None
    """Wall clock."""
    latency_ttft_ms: float | None
    """Milliseconds to the first token."""
    dropped: list[dict[str, Any]]
    """What a conversion between dialects had no place for: ``path``, ``reason``; absent where nothing was lost."""


class Perf(TypedDict, total=False):
    """``ng_perf``: what a rollout cost."""

    num_turns: int
    """Turns; for an invocation without any its model calls, or else 1."""
    num_tool_calls: int
    """Observed tool calls."""
    token_observability_coverage: float
    """Owned model calls by turns, at most 1."""
    prompt_tokens: int
    """Tokens read by owned calls."""
    cached_prompt_tokens: int
    """Of these, from a cache."""
    completion_tokens: int
    """Tokens written by owned calls."""
    reasoning_tokens: int
    """Of these, reasoning."""
    total_latency_ms: float
    """Wall clock of the whole rollout, as the collector saw it."""


_ADAPTER = TypeAdapter(TrajectoryRecord)


def check_trajectory(content: object) -> TrajectoryRecord:
    """Return the trajectory in ``content``. Raises WireError."""
    try:
        return _ADAPTER.validate_python(content)
    except ValidationError as error:
        raise wire_error("the trajectory", error, content) from None
