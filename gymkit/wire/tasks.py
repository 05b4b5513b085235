"""A task: one row of input, and the names it goes by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from gymkit.errors import WireError
from gymkit.wire.problems import wire_error
from gymkit.wire.responses import Request

RESERVED_KEYS: Final = frozenset({"responses_create_params", "agent_ref", "task_source", "skills_ref"})
"""Keys of a task row that have a meaning of their own, beside every key that starts with ``_ng_``."""

RESULT_KEYS: Final = frozenset(
    {
        "reward",
        "response",
        "error",
        "mask_sample",
        "failure_kind",
        "failure_reason",
        "reward_components",
        "gymkit",
    }
)
"""Keys that only a result row has, beside every key that starts with ``_ng_`` or ``ng_``."""

_ROUTING_KEYS: Final = RESERVED_KEYS - {"responses_create_params"}

_ROLLOUT_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_RETRY_SUFFIX: Final = re.compile(r"-a[1-9][0-9]*$")


def strip_result_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``row`` without what an earlier run left in it, so that a result can serve as a task again."""
    return {key: value for key, value in row.items() if key not in RESULT_KEYS and not key.startswith(("_ng_", "ng_"))}


def is_materialized(row: Mapping[str, Any]) -> bool:
    """Say whether ``row`` has the shape of a ``MaterializedTask``, valid or not; any other row is flat."""
    return isinstance(row.get("task_id"), Mapping) and "task_input" in row


class TaskRow(BaseModel):
    """A task as a resources server sees it; a server's own ``Task`` adds the fields that it needs."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: Request
    """What the agent is asked first."""


def _no_retry_suffix(rollout_id: str) -> str:
    if _RETRY_SUFFIX.search(rollout_id):
        raise ValueError("must not end in -a and a number, which marks a retry")
    return rollout_id


class EpisodeId(BaseModel):
    """Names one attempt at one rollout."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rollout_id: Annotated[str, Field(pattern=_ROLLOUT_ID), AfterValidator(_no_retry_suffix)]
    """Names the rollout."""
    attempt: Annotated[int, Field(ge=0)] = 0
    """Number of the attempt, 0 for the first."""

    @property
    def capture_key(self) -> str:
        """The id in URLs and file names: the rollout's, with ``-a<attempt>`` after the first attempt."""
        return f"{self.rollout_id}-a{self.attempt}" if self.attempt else self.rollout_id


def episode_of(row: Mapping[str, Any]) -> EpisodeId | None:
    """The episode that a planned row is: its own ``_ng_rollout_id`` or ``<task>-<rollout>``, and the attempt.

    None for a row without either. Raises WireError for a name that cannot be used.
    """
    name, task, rollout = row.get("_ng_rollout_id"), row.get("_ng_task_index"), row.get("_ng_rollout_index")
    if name is None and (task is None or rollout is None):
        return None
    fields = {"rollout_id": f"{task}-{rollout}" if name is None else name, "attempt": row.get("_ng_attempt_index", 0)}
    try:
        return EpisodeId.model_validate(fields)
    except ValidationError as error:
        raise wire_error("the rollout's name", error, fields) from None


def capture_key_of(row: Mapping[str, Any]) -> str | None:
    """The ``capture_key`` of the episode that a planned row is. Raises WireError."""
    task, rollout, attempt = row.get("_ng_task_index"), row.get("_ng_rollout_index"), row.get("_ng_attempt_index", 0)
    if (
        row.get("_ng_rollout_id") is None
        and type(task) is type(rollout) is type(attempt) is int
        and task >= 0 <= attempt
    ):
        return f"{task}-{rollout}-a{attempt}" if attempt else f"{task}-{rollout}"  # most rows, and nothing to check
    episode = episode_of(row)
    return episode.capture_key if episode else None


class TaskId(BaseModel):
    """Names one task of one task set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    taskset: Annotated[str, Field(min_length=1)]
    """The task set, by convention ``<environment>:<taskset>`` where several are mixed."""
    task_id: Annotated[str, Field(min_length=1)]
    """The task within its set."""


class MaterializedTask(BaseModel):
    """A task in the form that an environment server takes."""

    model_config = ConfigDict(extra="forbid")

    task_id: TaskId
    """Names the task."""
    task_input: dict[str, Any]
    """The task's fields, of the environment's own schema."""


def flat_task(task_input: Mapping[str, Any]) -> dict[str, Any]:
    """A task's fields on one level: what stands in ``task_data`` beside what stands around it.

    Raises ValueError for a field that stands in both with different values.
    """
    inside = task_input.get("task_data") or {}
    around = {key: value for key, value in task_input.items() if key != "task_data"}
    if differing := sorted(key for key in inside.keys() & around.keys() if inside[key] != around[key]):
        raise ValueError(f"task_data.{differing[0]} differs from the field {differing[0]} beside task_data")
    return {**inside, **around}


def materialized(row: Mapping[str, Any], taskset: str) -> MaterializedTask:
    """The flat task ``row`` in the form that an environment server takes, named by the first id that it has.

    Raises WireError for a row without any.
    """
    ids = (row.get(key) for key in ("task_id", "problem_id", "instance_id", "_ng_task_index"))
    name = next((str(each) for each in ids if each is not None), None)
    if name is None:
        raise WireError("the task", ["task_id: is missing, and so are problem_id, instance_id and _ng_task_index"])
    task_input = {key: value for key, value in strip_result_fields(row).items() if key not in _ROUTING_KEYS}
    return MaterializedTask(task_id=TaskId(taskset=taskset, task_id=name), task_input=task_input)
