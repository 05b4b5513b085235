"""What an agent says it saw of its own work: ``ng_agent_observations``, NeMo Gym's AgentObservationBundle.

Checked at the door and kept as it came. A reference to a model call is a claim: the collector joins it to a captured
call or names the gap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from gymkit.wire.problems import wire_error

Status = Literal["completed", "failed", "incomplete", "unknown"]
"""How an invocation ended."""

ToolStatus = Literal["completed", "failed", "timeout", "cancelled", "incomplete", "unknown"]
"""How a tool call ended."""


class Strict(BaseModel):
    """A record in which a field that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid")


class ModelRef(Strict):
    """Names a model server."""

    type: str = "responses_api_models"
    """Kind of server."""
    name: str
    """Its name in the configuration."""


class ModelCallRef(Strict):
    """Names one call of a model: by its own id, or by the server and the id of its response."""

    model_call_id: str | None = None
    """Id that the model server gave the call."""
    model_ref: ModelRef | None = None
    """The server."""
    response_id: str | None = None
    """Id of the response."""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.model_call_id is None and (self.model_ref is None or self.response_id is None):
            raise ValueError("either model_call_id, or model_ref and response_id are needed")
        return self


class Gap(Strict):
    """Something that is not known, said out loud."""

    code: str
    """What is missing."""
    invocation_id: str | None = None
    """Of which invocation."""
    detail: str | None = None
    """In words."""


class AgentInvocation(Strict):
    """One activation of an agent, or of an agent that another one called."""

    kind: Literal["agent_invocation"] = "agent_invocation"
    """Marks the record."""
    invocation_id: str
    """Its name within the rollout."""
    parent_invocation_id: str | None = None
    """The invocation that began it."""
    spawned_by_tool_call_id: str | None = None
    """The tool call that began it."""
    status: Status
    """How it ended."""
    duration_ms: float | None = None
    """Wall clock."""
    error_type: str | None = None
    """What ended it, where it failed."""
    model_calls: list[ModelCallRef] = Field(default_factory=list)
    """The model calls that it says are its own."""
    conversation: list[Any] = Field(default_factory=list)
    """Responses items, the ones it was given first."""


class ToolCall(Strict):
    """One tool call as its executor saw it."""

    kind: Literal["tool_call"] = "tool_call"
    """Marks the record."""
    invocation_id: str
    """Whose call it is."""
    tool_call_id: str
    """What pairs it with the model's call."""
    sandbox_id: str | None = None
    """Where it ran."""
    tool_name: str | None = None
    """The tool."""
    started_at: float | None = None
    """Unix seconds."""
    completed_at: float | None = None
    """Unix seconds, not before ``started_at``."""
    duration_ms: float | None = None
    """Wall clock."""
    timing_source: Literal["executor", "artifact", "harness"] | None = None
    """Who held the watch."""
    status: ToolStatus
    """How it ended."""
    error_type: str | None = None
    """What went wrong."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.started_at is not None and self.completed_at is not None and self.completed_at < self.started_at:
            raise ValueError("completed_at is before started_at")
        return self


class ContextCompaction(Strict):
    """The agent shortened its own context."""

    kind: Literal["context_compaction"] = "context_compaction"
    """Marks the record."""
    invocation_id: str
    """Whose context."""
    observed_at: float | None = None
    """Unix seconds."""
    trigger: str | None = None
    """Why."""
    tokens_before: int | None = None
    """Size before."""
    tokens_after: int | None = None
    """Size after."""
    outcome: Literal["completed", "failed", "aborted", "unknown"]
    """How it ended."""
    summary: str | None = None
    """What took the place of what was dropped."""
    first_kept_item_id: str | None = None
    """Where the kept part begins."""
    before_model_call: ModelCallRef | None = None
    """The last call before it."""
    model_calls: list[ModelCallRef] = Field(default_factory=list)
    """The calls that made the summary."""
    after_model_call: ModelCallRef | None = None
    """The first call after it."""


class Sandbox(Strict):
    """What a sandbox used."""

    kind: Literal["sandbox"] = "sandbox"
    """Marks the record."""
    role: Literal["agent", "verifier", "environment"]
    """Whose it was."""
    provider: str | None = None
    """Who ran it."""
    sandbox_id: str | None = None
    """Its name."""
    outcome: Literal["completed", "failed", "timeout", "oom", "sandbox_error", "cancelled", "unknown"]
    """How it ended."""
    exit_code: int | None = None
    """Of its main process."""
    wall_time_s: float | None = None
    """Wall clock."""
    cpu_time_s: float | None = None
    """CPU time."""
    peak_memory_mib: float | None = None
    """Memory at most."""
    resource_usage_source: str | None = None
    """Who measured."""
    error_type: str | None = None
    """What went wrong."""


Observation = Annotated[AgentInvocation | ToolCall | ContextCompaction | Sandbox, Field(discriminator="kind")]
"""One record."""


class AgentObservations(Strict):
    """The bundle."""

    source: str
    """Who observed."""
    records: list[Observation] = Field(default_factory=list)
    """What was seen."""
    gaps: list[Gap] = Field(default_factory=list)
    """What was not."""

    @model_validator(mode="after")
    def _a_forest(self) -> Self:
        check_invocations(record for record in self.records if isinstance(record, AgentInvocation))
        return self


def check_invocations(invocations: Iterable[AgentInvocation]) -> None:
    """Raise ValueError for an invocation id that comes twice, and for one that is its own ancestor."""
    parents: dict[str, str | None] = {}
    for each in invocations:
        if each.invocation_id in parents:
            raise ValueError(f"invocation_id {each.invocation_id!r:.80} comes twice")
        parents[each.invocation_id] = each.parent_invocation_id
    for name in parents:
        seen, at = {name}, parents[name]
        while at is not None:
            if at in seen:
                raise ValueError(f"invocation {name!r:.80} is its own ancestor")
            seen.add(at)
            at = parents.get(at)


_ADAPTER = TypeAdapter(AgentObservations)


def check_observations(content: object) -> AgentObservations:
    """Return the bundle in ``content``. Raises WireError."""
    try:
        return _ADAPTER.validate_python(content)
    except ValidationError as error:
        raise wire_error("the agent's observations", error, content) from None
