"""What is decoded of a line on disk: only these fields are built, everything else is skipped at reading speed.

Every field may be absent or null: NeMo Gym writes nulls and knows nothing of ``gymkit``. Scalars are read as whatever
they are; the columns decide what they accept. Whoever needs a whole row asks ``Records.record``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gymkit.frames.messages import Talked


class Part(msgspec.Struct, gc=False):
    """A part of a message, of a tool's output or of a reasoning item."""

    text: Any = None
    """The text of the part."""
    refusal: Any = None
    """What the agent said instead of an answer."""


Content = str | list[Part] | None
"""Text as it is, or in parts."""


class Item(msgspec.Struct, gc=False):
    """An item of the conversation."""

    type: Any = None
    """Which kind of item it is; absent on a message of the short form."""
    role: Any = None
    """Of a message: who speaks."""
    name: Any = None
    """Of a call: the function."""
    arguments: Any = None
    """Of a call: the arguments as the agent wrote them."""
    call_id: Any = None
    """Of a call and of its output: what pairs them."""
    content: Content = None
    """Of a message or a reasoning item: its text."""
    output: Content = None
    """Of a call's output: its text."""
    summary: Content = None
    """Of a reasoning item: its summary."""


class ItemKind(msgspec.Struct, gc=False):
    """An item of which only the kind is of interest."""

    type: Any = None
    """Which kind of item it is."""


class Usage(msgspec.Struct, gc=False):
    """The tokens of a rollout, summed over its calls."""

    input_tokens: Any = None
    """Tokens read."""
    output_tokens: Any = None
    """Tokens written."""
    total_tokens: Any = None
    """Both."""


class Outline(msgspec.Struct, gc=False):
    """A response without its texts."""

    output: list[ItemKind] | None = None
    """The kinds of its items, in order."""
    usage: Usage | None = None
    """Its tokens, if the service reported them."""


class Conversation(msgspec.Struct, gc=False):
    """A response with its items."""

    output: list[Item] | None = None
    """The items, in order."""


class Params(msgspec.Struct, gc=False):
    """What the agent was asked first."""

    input: str | list[Item] | None = None
    """The conversation before the rollout, or one message of the user."""


class ExecutedCall(msgspec.Struct, gc=False):
    """A tool call that gymkit executed for the agent."""

    item: Any = None
    """Index of its output in ``response.output``."""
    step: Any = None
    """Number of the service's call that asked for it, from 1."""
    error: Any = None
    """``undeclared``, ``malformed``, ``failed``, or null when it went well."""
    seconds: Any = None
    """Wall clock of the execution."""


class Ours(msgspec.Struct, gc=False):
    """What gymkit adds to a row."""

    run: Any = None
    """Fingerprint of the run's configuration."""
    started_at: Any = None
    """Unix seconds at which the collector sent the rollout."""
    seconds: Any = None
    """Wall clock of the rollout."""
    steps: Any = None
    """Calls of the agent service."""
    termination_reason: Any = None
    """Why the loop ended."""
    calls: list[ExecutedCall] | None = None
    """The calls that were executed for the agent; absent when that is not known."""


class AgentRef(msgspec.Struct, gc=False):
    """Which agent ran."""

    name: Any = None
    """Its name in the configuration."""


class TaskName(msgspec.Struct, gc=False):
    """A task by name instead of by number."""

    task_id: Any = None
    """The task within its set."""


class Stamped(msgspec.Struct, gc=False, rename={"task_index": "_ng_task_index", "rollout_index": "_ng_rollout_index"}):
    """The stamps that every row of a run carries."""

    task_index: Any = None
    """Number of the task."""
    rollout_index: Any = None
    """Number of the rollout of that task."""
    attempt: Any = msgspec.field(name="_ng_attempt_index", default=None)
    """Number of the retry; absent means 0."""
    failure_class: Any = msgspec.field(name="_ng_failure_class", default=None)
    """What marks a row as a failed attempt."""


class Verdict(Stamped, gc=False):
    """What the verifier said."""

    reward: Any = None
    """The reward."""
    mask_sample: Any = None
    """Whether the reward is not a measurement of the agent."""
    failure_kind: Any = None
    """Which kind of failure, by the shared vocabulary."""
    failure_reason: Any = None
    """The failure in words."""


class Planned(Stamped, gc=False):
    """A row of the plan without the task; any other row has these fields too."""

    agent_ref: AgentRef | None = None
    """Which agent runs it."""
    environment: Any = msgspec.field(name="_ng_environment_server", default=None)
    """Which environment server runs it."""
    task_name: TaskName | None = msgspec.field(name="_ng_task_id", default=None)
    """The task, as an environment server names it."""
    task_id: Any = None
    """The task, as its row names it: a name, or an object that holds one."""
    problem_id: Any = None
    """Another place for the task's name."""
    instance_id: Any = None
    """Another place for the task's name."""
    gymkit: Ours | None = None
    """What gymkit adds."""


class Turned(msgspec.Struct, gc=False):
    """A message of a conversation with a simulated user, without its text."""

    role: Any = None
    """Who speaks."""
    tool_calls: list[ItemKind] | None = None
    """What the assistant asks for."""


class Simulated(msgspec.Struct, gc=False):
    """A conversation with a simulated user, without its texts."""

    conversation_messages: list[Turned] | None = None
    """What was said, in order."""


class Answered(msgspec.Struct, gc=False):
    """A response of which only the tokens are of interest."""

    usage: Usage | None = None
    """Its tokens, if they were reported."""


class Acted(msgspec.Struct, gc=False):
    """One time that a role of an episode spoke, without what was said."""

    role: Any = None
    """Who."""
    response: Answered | None = None
    """What came."""


class Row(Planned, gc=False):
    """A result or a failed attempt without its texts."""

    reward: Any = None
    """What the verifier gave."""
    mask_sample: Any = None
    """Whether the reward is not a measurement of the agent."""
    failure_kind: Any = None
    """Which kind of failure, by the shared vocabulary."""
    reward_components: Any = None
    """The rewards by objective."""
    response: Outline | None = None
    """The agent's side of the rollout."""
    usersim_result: Simulated | None = None
    """What was said, in a row of simulated users, which has no response."""
    invocations: list[Acted] | None = None
    """Who spoke when, in a row of simulated users."""


class FailureRow(Stamped, gc=False):
    """A failed attempt."""

    failure_kind: Any = None
    """Which kind of failure, by the shared vocabulary."""
    failure_reason: Any = None
    """The failure in words, from a verifier."""
    error: Any = None
    """The failure in words, from an agent server."""
    message: Any = msgspec.field(name="_ng_failure_message", default=None)
    """The failure in words, from the collector."""
    judge_error: Any = msgspec.field(name="_ng_failure_judge_error", default=None)
    """The failure in words, from a judge."""
    terminal: Any = msgspec.field(name="_ng_failure_terminal", default=None)
    """Whether another attempt would end in the same way."""
    gymkit: Ours | None = None
    """What gymkit adds."""


class Transcript(Stamped, gc=False):
    """A row of the main file with its conversation."""

    responses_create_params: Params | None = None
    """What the agent was asked first."""
    response: Conversation | None = None
    """What came of it."""
    usersim_result: Talked | None = None
    """What was said, in a row of simulated users, which has no response."""
    gymkit: Ours | None = None
    """What gymkit adds."""
