"""The two forms of a seed: an environment server names the session, an agent sends the whole task row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class TypedSeed(BaseModel):
    """The seed of an environment server (a row of an agent's ``/run`` is the other form)."""

    model_config = ConfigDict(extra="forbid")

    resources_session_id: str = Field(min_length=1)
    """The caller's name for the session."""
    episode_id: dict[str, Any]
    """The episode it belongs to."""
    task_id: dict[str, Any]
    """The task it belongs to."""
    task_data: dict[str, Any]
    """The task's fields."""

    @property
    def row(self) -> Mapping[str, Any]:
        """The task's fields as a row; the parameters go to the agent and are not in it."""
        return {"responses_create_params": {"input": []}, **self.task_data}


def typed_seed(body: dict[str, Any]) -> TypedSeed | None:
    """The typed form, or None for a row; a body that is almost typed counts as a row, as at NeMo Gym."""
    if "resources_session_id" not in body:
        return None
    try:
        return TypedSeed.model_validate(body)
    except ValidationError:
        return None
