"""An episode that stops wherever a model has to speak, so that whoever hosts it decides which model that is.

::

    activation = await runtime.advance()
    while activation is not None:
        spoken = await ask(activation)                  # whoever plays activation.role
        activation = await runtime.advance(spoken)
    row = await runtime.finalize()

A model that cannot answer is reported with ``fail``: the episode is then over, and ``finalize`` tells it as an outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gymkit.errors import GymkitError

Role = Literal["user", "assistant", "judge", "summary", "tool_simulation"]
"""Who speaks: the simulated user, the assistant under test, and three who support the conversation."""

ROLES: tuple[Role, ...] = ("user", "assistant", "judge", "summary", "tool_simulation")
PARTICIPANTS: tuple[Role, ...] = ("user", "assistant")
"""The two whose words make up the conversation."""

PROTOCOL = "usersim.ConversationLoop"
"""What rows call the way in which these episodes go."""

Message = dict[str, Any]
"""One message as Chat Completions has it: ``role``, ``content``, and ``tool_calls`` or ``tool_call_id``."""


class ContractError(ValueError):
    """What the host handed in is no reply to what was asked."""


class RoleUnavailable(GymkitError, TypeError):
    """A supporting model gave no answer; ``role`` says which, ``error`` what happened.

    A TypeError as well, since that is what User Sim takes for a call that asking again cannot mend: model servers ask
    again themselves, and a second round of waiting here would only hide who failed.
    """

    def __init__(self, role: Role, error: Exception) -> None:
        self.role = role
        self.error = error
        super().__init__(str(error) or type(error).__name__)


@dataclass(frozen=True, slots=True)
class Activation:
    """A model has to speak."""

    id: str
    """Names it within the episode."""
    role: Role
    """Who."""
    messages: tuple[Message, ...]
    """What it is given."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Further Chat Completions parameters."""
    tools: tuple[dict[str, Any], ...] = ()
    """The tools it may call, as Chat Completions declares them."""
    continues_turn: bool = False
    """Whether it goes on with its turn instead of beginning one."""

    def tool_names(self) -> set[str]:
        """The names of its tools."""
        return {str(tool.get("function", {}).get("name")) for tool in self.tools}


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a model said."""

    activation: str
    """The activation's id."""
    message: Message
    """An assistant's message as Chat Completions has it."""
    usage: tuple[int, int] | None = None
    """Tokens read and written, where they are known."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How an episode ended early."""

    failure_class: str
    """Name of what went wrong."""
    attribution: str
    """Whose fault it was: ``assistant_model``, ``user_model``, ``infrastructure``, …"""
    detail: str
    """What happened, in words."""
    termination_reason: str
    """How the conversation ended."""


class EpisodeRuntime(Protocol):
    """One episode."""

    probe_type: str
    """What the episode is about."""

    async def advance(self, spoken: Spoken | None = None) -> Activation | None:
        """Begin, or take what was said and go on: who has to speak next, None when the episode is over.

        Raises ContractError for a message that is no reply to the activation, RoleUnavailable for a supporting model
        that gave no answer.
        """

    async def tool_result(self, call_id: str) -> str:
        """What the tool call ``call_id`` was answered with. Raises ContractError when it was not run."""

    async def evidence(self) -> dict[str, Any]:
        """The state as JSON, for whoever looks into it afterwards."""

    async def fail(self, failure: Failure, messages: list[Message]) -> None:
        """End the episode, because a model could not answer; ``messages`` is the conversation so far."""

    async def finalize(self) -> dict[str, Any]:
        """The result: ``conversation_messages``, ``conversation_status``, ``simulation_outcome`` and more."""

    async def close(self) -> None:
        """Let go of it."""


def failed_result(row: Mapping[str, Any], failure: Failure, messages: list[Message]) -> dict[str, Any]:
    """The result of an episode that ended in ``failure``."""
    outcome = {
        "status": "failed",
        "failure_class": failure.failure_class,
        "failure_attribution": failure.attribution,
        "failure_detail": failure.detail[:2000],
        "failure_reason": failure.detail[:2000],
        "termination_reason": failure.termination_reason,
        "warnings": [],
    }
    return {
        "trajectory_id": row["trajectory_id"],
        "conversation_messages": messages,
        "conversation_status": False,
        "simulation_outcome": outcome,
    }


NOT_RUN = '{"error": "not run: this turn has reached its limit of tool calls", "status": 429}'
"""What an assistant reads of a call that was not run."""


def answered(messages: list[Message]) -> list[Message]:
    """``messages`` with an output for every tool call: a call that was not run is told so.

    User Sim leaves the calls above its limit without one, which strict endpoints refuse.
    """
    done = {message.get("tool_call_id") for message in messages if message.get("role") == "tool"}
    told: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message.get("role") != "tool":
            told += _not_run(waiting)
            waiting = [call["id"] for call in message.get("tool_calls") or () if call["id"] not in done]
        told.append(message)
    return told + _not_run(waiting)


def _not_run(calls: list[str]) -> list[Message]:
    return [{"role": "tool", "content": NOT_RUN, "tool_call_id": call} for call in calls]
