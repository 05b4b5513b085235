"""One rollout of the check: what was said between the agent server and the service, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gymkit.sdk.check.exchange import Ask, Exchange


@dataclass(slots=True, eq=False)
class Played:
    """A rollout that was, or is being, played by the real agent server."""

    task: int
    """Number of the task."""
    disturbance: str = ""
    """The rule whose disturbance the first tool call meets; empty for a rollout left alone."""
    marker: str = ""
    """A word put into the prompt, to be recognised where it does not belong."""
    exchanges: list[Exchange] = field(default_factory=list)
    """The calls of the service so far."""
    disturbed_at: int | None = None
    """Which call of the service asked for the tool call that was disturbed; None while there was none."""
    row: dict[str, Any] = field(default_factory=dict)
    """What the agent server returned at the end: the verified rollout or a failure row."""

    @property
    def met(self) -> Exchange | None:
        """The call that told the service of the disturbance."""
        told = [] if self.disturbed_at is None else self.exchanges[self.disturbed_at + 1 :]
        return told[0] if told else None

    @property
    def broken(self) -> Exchange | None:
        """The call whose answer was of no use, which ended the rollout."""
        return next((exchange for exchange in self.exchanges if exchange.error is not None), None)

    @property
    def ended(self) -> str:
        """``message``, ``incomplete``, ``max_steps``, ``deadline`` or ``error``; empty when it was cut short."""
        if self.failure_kind == "verify":
            return "message"
        return str(self.row.get("gymkit", {}).get("termination_reason", ""))

    @property
    def finished(self) -> bool:
        """Whether the service brought it to an end."""
        return self.ended in ("message", "incomplete")

    @property
    def failure_kind(self) -> str | None:
        """The kind of the failure row; None for a verified rollout."""
        return self.row["failure_kind"] if "_ng_failure_class" in self.row else None

    @property
    def reward(self) -> float | None:
        """What the environment gave, None where it gave nothing."""
        return None if not self.row or self.failure_kind else float(self.row["reward"])

    @property
    def asks(self) -> list[Ask]:
        """The tool calls it asked for, in order."""
        return [ask for exchange in self.exchanges for ask in exchange.asks]

    @property
    def environments_fault(self) -> str | None:
        """Why the rollout failed where the service has no part in it."""
        if self.failure_kind in (None, "verify") or self.ended == "deadline" or self.broken:
            return None
        return f"task {self.task}: {self.row['error']}"

    def same_as(self, other: Played) -> bool:
        """Whether both asked for the same calls and got the same reward."""
        return (self.asks, self.reward) == (other.asks, other.reward)

    def in_words(self) -> str:
        """How it went, in a few words."""
        if self.broken:
            return f"failed at call {len(self.exchanges)}: {self.broken.error}"
        asks = ", ".join(f"{name}({arguments})" for name, arguments in self.asks) or "no tool"
        reward = "no reward" if self.reward is None else f"reward {self.reward:g}"
        return f"asked for {asks}; {reward}"
