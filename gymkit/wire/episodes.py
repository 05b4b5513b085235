"""What an environment server is asked and what it answers: a result, or a failure that it handled."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from gymkit.wire.failures import FailureStage
from gymkit.wire.tasks import EpisodeId, MaterializedTask, TaskId

REASON_LENGTH = 2000
"""Characters that a failure's reason may have."""


class EpisodeFailure(BaseModel):
    """Why an episode has no result. What is unknown is left out when it is sent."""

    model_config = ConfigDict(extra="forbid")

    failure_reason: Annotated[str, Field(max_length=REASON_LENGTH)]
    """What happened, in words."""
    terminal: bool
    """True: trying again cannot help."""
    failure_kind: str | None = None
    """Name to group by; see ``gymkit.wire.failures``. An unknown name is kept."""
    stage: FailureStage | None = None
    """Where it happened."""
    partial_response: dict[str, Any] | None = None
    """The trajectory up to the failure, as a Response."""

    @model_serializer(mode="wrap")
    def _without_unknowns(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in serialize(self).items() if value is not None}


class EpisodeRequest(BaseModel):
    """Asks for one attempt at one task."""

    model_config = ConfigDict(extra="forbid")

    episode_id: EpisodeId
    """Names the attempt."""
    task: MaterializedTask
    """The task."""


class EpisodeResponse(BaseModel):
    """Tells how an attempt ended: exactly one of ``result`` and ``failure`` is set, the other is null."""

    model_config = ConfigDict(extra="forbid")

    episode_id: EpisodeId
    """The request's."""
    task_id: TaskId
    """The request's."""
    result: dict[str, Any] | None = None
    """The environment's result, by convention with ``reward`` and ``response``."""
    failure: EpisodeFailure | None = None
    """Why there is no result."""

    @model_validator(mode="after")
    def _one_of_two(self) -> EpisodeResponse:
        if (self.result is None) == (self.failure is None):
            raise ValueError("exactly one of result and failure must be set")
        return self
