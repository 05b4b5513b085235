"""The record of one time that a model spoke, as it is saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gymkit.usersim.chat import message_of
from gymkit.usersim.runtime import PARTICIPANTS, Message, Role


@dataclass(slots=True)
class Invocation:
    """One call of one role."""

    sequence: int
    """Its place in the episode, from 0."""
    role: Role
    """Who spoke."""
    request: dict[str, Any]
    """What was asked: a whole Responses request."""
    response: dict[str, Any]
    """What came: a whole Response."""
    seconds: float
    """Wall clock."""
    observations: Any = None
    """What the agent reported of it when its session was closed; None for a model."""
    state_after: dict[str, Any] | None = None
    """The episode's state, on the last word of the assistant."""
    termination_reason: str | None = None
    """How the conversation ended, on the last word of a participant."""

    def fields(self) -> dict[str, Any]:
        """As it is saved."""
        return {
            "sequence": self.sequence,
            "role": self.role,
            "request": self.request,
            "response": self.response,
            "observations": self.observations,
            "state_after": self.state_after,
            "termination_reason": self.termination_reason,
            "seconds": self.seconds,
        }


Listener = Callable[[Invocation], None]
"""Told of each invocation as it happens."""


def spoken_by_participants(invocations: Sequence[Invocation]) -> list[Message]:
    """What the user and the assistant said, in order, as texts."""
    spoken = [each for each in invocations if each.role in PARTICIPANTS]
    return [{"role": each.role, "content": message_of(each.response)["content"]} for each in spoken]


def spread_observations(invocations: Sequence[Invocation], role: Role, source: str, bundle: Any) -> None:
    """Give each invocation of ``role`` its part of the agent's report: the record of its activation and its calls.

    ``source`` is the name of the agent.
    """
    records = bundle.get("records") if isinstance(bundle, Mapping) else None
    if not isinstance(records, list):
        return
    handles = [each.get("invocation_id") for each in records if each.get("kind") == "agent_invocation"]
    own = [each for each in invocations if each.role == role]
    for invocation, handle in zip(own, handles, strict=False):
        mine = [record for record in records if record.get("invocation_id") == handle]
        gaps = [gap for gap in bundle.get("gaps") or () if gap.get("invocation_id") == handle]
        invocation.observations = {"source": source, "records": mine, "gaps": gaps}


def mark_end(invocations: Sequence[Invocation], evidence: dict[str, Any] | None, reason: str) -> None:
    """Put the final state on the assistant's last word and the reason on the last word of a participant."""
    assistant = [each for each in invocations if each.role == "assistant"]
    if assistant and evidence is not None:
        assistant[-1].state_after = evidence
    participants = [each for each in invocations if each.role in PARTICIPANTS]
    if participants:
        participants[-1].termination_reason = reason
