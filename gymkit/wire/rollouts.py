"""A result row and a failure row as they lie on disk, and which file a row belongs to.

Typed dicts to read by: rows are never checked against them, since a row holds whatever the task, the service and the
verifier sent. NeMo Gym's rows lack ``gymkit``, so nothing in it may be relied on.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from gymkit.wire.responses import Request, Response

TerminationReason = Literal["message", "incomplete", "max_steps", "deadline", "error"]
"""Why a rollout ended: the agent's answer, its ``incomplete_details``, a bound, or a failure."""

CallError = Literal["undeclared", "malformed", "failed"]
"""What was wrong with a call: no such tool, arguments that are not JSON, or the tool answered with an error."""

Sink = Literal["none", "failures", "main"]
"""Where a row is written: nowhere, to the failures file, or to the main file."""


class ExecutedCall(TypedDict):
    """A tool call that was executed for the agent."""

    item: int
    """Position of its ``function_call_output`` in ``response.output``."""
    step: int
    """Call of the agent service that asked for it, from 1."""
    error: CallError | None
    """What was wrong with it; null when nothing was."""
    seconds: float
    """Wall clock."""


class Facts(TypedDict, total=False):
    """What gymkit knows of a rollout: the object under the row's key ``gymkit``."""

    run: str
    """Fingerprint of the run's configuration, 12 hex digits."""
    started_at: float
    """When the collector sent the task; seconds since 1970."""
    seconds: float
    """Wall clock of the whole rollout."""
    steps: int
    """Calls of the agent service."""
    termination_reason: TerminationReason
    """Why it ended."""
    calls: list[ExecutedCall]
    """One for each tool call executed for the agent, in order."""
    config: dict[str, Any]
    """The configuration behind ``run``; only in the first line of the materialized inputs."""


class AgentRef(TypedDict):
    """Names the agent that a row is for."""

    name: str
    """The agent's name in the configuration."""
    type: NotRequired[str]
    """Kind of server, by default an agent server."""


class Stamps(TypedDict, total=False):
    """What the collector adds to every row."""

    _ng_task_index: int
    """The task within the run."""
    _ng_rollout_index: int
    """The rollout of that task."""
    _ng_attempt_index: int
    """Number of the retry; absent for the first attempt."""
    _ng_rollout_id: str
    """The rollout's name where the input row gave one."""
    _ng_environment_server: str
    """Name of the server that ran it."""
    _ng_result_type: str
    """Implementation of that server."""
    _ng_task_id: dict[str, str]
    """The task's name, from an environment server that uses names."""
    agent_ref: AgentRef
    """The agent."""
    task_source: str
    """Name of the server that declared the task."""
    skills_ref: Any
    """Skills that the agent was given."""
    gymkit: Facts
    """What gymkit knows of the rollout."""


class ResultRow(Stamps, total=False):
    """A line of the main file: a rollout that was scored or masked."""

    responses_create_params: Request
    """What the agent was asked first."""
    response: Response
    """The whole trajectory in one response."""
    reward: float
    """The verdict; a row without one is not scored."""
    mask_sample: bool
    """True: the reward is no measurement of the agent."""
    failure_kind: str | None
    """Name to group failures by."""
    failure_reason: str | None
    """What went wrong, in words."""
    reward_components: dict[str, float]
    """Objectives scored apart."""


class FailureRow(ResultRow, total=False):
    """A line of the failures file: one failed attempt. Its ``reward`` and ``response``, if any, are placeholders."""

    error: str
    """What went wrong, in words, from the remote agent."""
    _ng_failure_class: str
    """What failed; see ``gymkit.wire.failures``. A row with this key is a failure row."""
    _ng_failure_terminal: bool
    """True: a resume does not try again."""
    _ng_failure_type: str
    """Name of the exception, where the collector saw one."""
    _ng_failure_message: str
    """What went wrong, in words, from the collector or an environment server."""
    _ng_failure_stage: str
    """Where in an episode it happened."""
    _ng_failure_http_status: int
    """Status that the agent server answered with."""
    _ng_failure_response_body: str
    """Beginning of what the agent server answered."""
    _ng_failure_partial_response: Response
    """The trajectory up to the failure."""
    _ng_failure_judge_error: str
    """What the judge model's call ended with."""


def sink(row: Mapping[str, Any]) -> Sink:
    """Say which file ``row``, an agent's reply, belongs to."""
    if row.get("_ng_no_persist"):
        return "none"
    return "failures" if "_ng_failure_class" in row else "main"
