"""Which rollout the code at hand works for: a model that an agent's function asks goes on that one's record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from gymkit.servers.app import ServerApp
from gymkit.servers.capture import Capture

ROOT = "root"
"""The invocation that an agent's own first activation is."""


@dataclass(slots=True)
class Correlation:
    """One rollout and where its model calls are recorded."""

    rollout: str
    """Its capture key."""
    capture: Capture
    """Where records go."""
    calls: int = 0
    """Models asked so far."""
    servers: dict[Any, ServerApp] = field(default_factory=dict)
    """The model servers that it was asked of, by whoever made them."""

    def path(self, path: str, *, training: bool) -> str:
        """``path`` of a model server for a call of this rollout."""
        return f"/ng-rollout/{self.rollout}{'/training-token-capture' if training else ''}{path}"

    async def aclose(self) -> None:
        """The rollout has ended: let go of its servers."""
        for server in self.servers.values():
            await server.aclose()
        self.servers.clear()


_current: ContextVar[Correlation | None] = ContextVar("gymkit_correlation", default=None)


def current() -> Correlation | None:
    """The rollout that this task or thread works for; None outside of one."""
    return _current.get()


@contextmanager
def working_for(correlation: Correlation | None) -> Iterator[None]:
    """What the body calls, in this task or in threads that it starts, is work for that rollout."""
    token = _current.set(correlation)
    try:
        yield
    finally:
        _current.reset(token)
