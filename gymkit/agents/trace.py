"""What an agent server keeps of one rollout while it runs: the output so far, how it ended, and each executed call."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from gymkit.wire.usage import Usage, sum_usage


@dataclass(slots=True)
class Trace:
    """One rollout in the making."""

    output: list[dict[str, Any]] = field(default_factory=list)
    """Every item so far: the agent's, and the outputs of the calls executed for it."""
    last: dict[str, Any] = field(default_factory=dict)
    """The agent's latest reply."""
    steps: int = 0
    """Replies of the agent so far."""
    termination_reason: str = ""
    """Why it ended: ``message``, ``incomplete``, ``max_steps``, ``deadline`` or ``error``; empty while it runs."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """One entry per executed call: its output's index, the step, the error or None, and the seconds it took."""
    ends: list[float] = field(default_factory=list)
    """Unix seconds at which each of ``calls`` was done."""
    replies: list[str] = field(default_factory=list)
    """The ids of the agent's replies."""

    seconds: float = 0.0
    """Wall clock of the conversation, without seed and verdict."""
    models_asked: int = 0
    """Calls of models on the rollout's record that the answering side made beside."""

    _usages: list[Any] = field(default_factory=list)

    def step(self, reply: dict[str, Any], asks: bool) -> None:
        """Take a valid reply in; ``asks`` says that it holds calls to execute."""
        self.steps += 1
        self.last = reply
        self.replies.append(reply["id"])
        self._usages.append(reply.get("usage"))
        self.output.extend(reply["output"])
        if reply.get("incomplete_details"):
            self.termination_reason = "incomplete"
        elif not asks and any(_is_answer(item) for item in reply["output"]):
            self.termination_reason = "message"

    def fall_silent(self) -> None:
        """The reply neither says nor asks anything, and nobody will ask again: the response is marked incomplete."""
        self.termination_reason = "incomplete"
        reason, what = ("incomplete_reasoning", "no message") if self.last["output"] else ("empty_output", "nothing")
        told = f"the model's reply holds {what} and no tool call, without saying that it was cut short"
        metadata = {"ng_termination_reason": reason, "ng_termination_message": told}
        self.last = {
            **self.last,
            "status": "incomplete",
            "metadata": {**(self.last.get("metadata") or {}), **metadata},
        }

    def executed(self, call_id: str, output: str, error: str | None, seconds: float) -> None:
        """Append the output of a call that was executed for the agent."""
        self.calls.append({"item": len(self.output), "step": self.steps, "error": error, "seconds": round(seconds, 6)})
        self.ends.append(time.time())
        self.output.append({"type": "function_call_output", "call_id": call_id, "output": output})

    def usage(self) -> Usage | None:
        """The usage of all replies together; None where any of them did not report it, since a part is no sum."""
        return None if None in self._usages else sum_usage(self._usages)

    def response(self) -> dict[str, Any]:
        """The whole trajectory as one response: the last reply, with every item and the usage of all."""
        response = {**self.last, "output": self.output}
        response.pop("usage", None)
        if (usage := self.usage()) is not None:
            response["usage"] = usage
        return response

    def fields(self) -> dict[str, Any]:
        """This rollout's part of the row's ``gymkit`` object."""
        return {"steps": self.steps, "termination_reason": self.termination_reason, "calls": self.calls}


def _is_answer(item: dict[str, Any]) -> bool:
    return item.get("type", "message") == "message" and item.get("role") == "assistant"
