"""Which environment server runs a task row: one for all, or for rows in materialized form the one of their task set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gymkit.collect.checks import CheckTask
from gymkit.nearest import nearest
from gymkit.wire.tasks import is_materialized

_NO_FLAT = (
    "this run takes no flat rows: name an agent (agent_name), or an environment server "
    "(environment_server_name, with environment_routing_mode=legacy)"
)


@dataclass(frozen=True, slots=True)
class Target:
    """An environment server that runs rollouts; as a ``Routing``, it runs them all."""

    agent: str | None
    """Name of the agent (``agent_ref``); None where rows name none, because the environment server alone knows."""
    environment_server: str
    """Name of the environment server that answers ``/run``."""
    result_type: str
    """Name of that server's implementation."""
    check_task: CheckTask | None = field(default=None, compare=False, repr=False)
    """What the environment misses in a task."""
    takes_flat: bool = True
    """Whether it takes flat rows, not only episodes."""

    @property
    def targets(self) -> tuple[Target, ...]:
        """This one."""
        return (self,)

    def of(self, row: Mapping[str, Any]) -> Target | None:
        """This one."""
        return self

    def problems(self, row: Mapping[str, Any]) -> Iterator[str]:
        """Yield why it cannot run ``row``."""
        if not self.takes_flat and not is_materialized(row):
            name = f"{self.environment_server} ({self.result_type})"
            yield f"task_input: is missing, and {name} takes only rows that name their task_id and task_input"

    def settings(self) -> dict[str, Any]:
        """What results depend on."""
        return {"agent_ref": {"name": self.agent}, "environment_server": self.environment_server}


class Routing(Protocol):
    """Where rows go."""

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every environment server that may be asked."""

    def of(self, row: Mapping[str, Any]) -> Target | None:
        """The one for ``row``; None when there is none."""

    def problems(self, row: Mapping[str, Any]) -> Iterator[str]:
        """Yield why ``row`` cannot be run."""

    def settings(self) -> dict[str, Any]:
        """What results depend on."""


@dataclass(frozen=True, slots=True)
class ByTaskset:
    """Rows in materialized form go where ``routes`` has their task set, flat rows to ``flat``, if there is one."""

    routes: Mapping[str, Target]
    """Task set to environment server."""
    flat: Target | None = None
    """Where flat rows go; None refuses them."""

    @property
    def targets(self) -> tuple[Target, ...]:
        """All of them, each once."""
        every = [*([self.flat] if self.flat else []), *self.routes.values()]
        return tuple({target.environment_server: target for target in every}.values())

    def of(self, row: Mapping[str, Any]) -> Target | None:
        """By the task set, or for a flat row the one for flat rows."""
        return self.routes.get(_taskset(row)) if is_materialized(row) else self.flat

    def problems(self, row: Mapping[str, Any]) -> Iterator[str]:
        """Yield that there is no route, or what the target says."""
        if (target := self.of(row)) is not None:
            yield from target.problems(row)
        elif is_materialized(row):
            taskset = _taskset(row)
            hint = nearest(taskset, list(self.routes))
            yield f"task_id.taskset: no environment server is set for {taskset!r} in environment_server_routes; {hint}"
        else:
            yield f"task_input: is missing, and {_NO_FLAT}"

    def settings(self) -> dict[str, Any]:
        """What results depend on."""
        flat = self.flat.settings() if self.flat else {"agent_ref": {"name": None}, "environment_server": None}
        routes = {taskset: target.environment_server for taskset, target in self.routes.items()}
        return {**flat, "environment_server_routes": routes} if routes else flat


def _taskset(row: Mapping[str, Any]) -> str:
    return str(row["task_id"].get("taskset"))
