"""``counter``: add to a number that the environment keeps, and read it. The smallest environment with state.

NeMo Gym calls it ``example_session_state_mgmt``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymkit.servers.resources import ResourcesServer
from gymkit.servers.tool import tool
from gymkit.wire.tasks import TaskRow


class CounterTask(TaskRow):
    """A task of the counter."""

    initial_count: int
    """Where the counter starts."""
    expected_count: int
    """Where it must stand at the end."""


@dataclass
class CounterState:
    """One rollout's counter."""

    count: int


class Counter(ResourcesServer[CounterState]):
    """The counter's server: reward 1 when the counter stands where the task expects it, else 0."""

    implementation = "counter"
    Task = CounterTask

    def seed(self, task: CounterTask) -> CounterState:
        """Start at the task's ``initial_count``."""
        return CounterState(task.initial_count)

    @tool
    def increment_counter(self, state: CounterState, count: int) -> dict[str, bool]:
        """Add a whole number to the counter."""
        state.count += count
        return {"success": True}

    @tool
    def get_counter_value(self, state: CounterState) -> dict[str, int]:
        """Read the counter."""
        return {"count": state.count}

    def verify(self, state: CounterState, task: CounterTask, response: dict[str, Any]) -> float:
        """1.0 when the counter equals ``expected_count``."""
        return float(state.count == task.expected_count)
