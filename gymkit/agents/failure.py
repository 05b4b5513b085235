"""A rollout that an agent server could not bring to a verdict, as the row that is kept of it."""

from __future__ import annotations

import logging
from typing import Any

from gymkit.agents.trace import Trace
from gymkit.errors import GymkitError, ServerError, WireError

log = logging.getLogger("gymkit")


class RolloutFailed(GymkitError):
    """Ends a rollout: ``kind`` groups it, ``terminal`` says that a retry cannot help."""

    def __init__(self, message: str, *, kind: str, terminal: bool = False) -> None:
        self.kind = kind
        self.terminal = terminal
        super().__init__(message)


def cause_of(error: Exception, agent: str) -> RolloutFailed:
    """What ended a rollout of ``agent``, as a sentence with a kind; what nobody foresaw is logged whole."""
    if isinstance(error, RolloutFailed):
        return error
    if isinstance(error, ServerError):
        return RolloutFailed(str(error), kind=error.kind, terminal=error.terminal)
    if not isinstance(error, WireError):
        log.exception("%s: a rollout failed in gymkit itself", agent, exc_info=error)
    return RolloutFailed(f"{type(error).__name__}: {error}", kind="agent_error")


def failure_row(
    row: dict[str, Any], trace: Trace, cause: RolloutFailed, *, label: str, placeholder: str, agent: str
) -> dict[str, Any]:
    """The row for the sidecar: the task's fields, so that it can be a task again, and what happened.

    ``label`` is its ``_ng_failure_class``, ``placeholder`` the id of the response that stands in for none.
    """
    failure = {
        **row,
        "response": _placeholder(placeholder, agent),
        "reward": 0.0,
        "mask_sample": False,
        "failure_kind": cause.kind,
        "error": str(cause),
        "_ng_failure_class": label,
        "gymkit": trace.fields(),
    }
    if cause.terminal:
        failure["_ng_failure_terminal"] = True
    if trace.steps:
        failure["_ng_failure_partial_response"] = trace.response()
    return failure


def _placeholder(response_id: str, agent: str) -> dict[str, Any]:
    """A response for a row that has none: NeMo Gym's readers want the field."""
    content = [{"type": "output_text", "text": "", "annotations": []}]
    return {
        "id": response_id,
        "created_at": 0.0,
        "model": agent,
        "object": "response",
        "output": [{"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": content}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
