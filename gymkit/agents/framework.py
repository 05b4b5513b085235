"""What the adapters of frameworks share: a function of the user's that makes the agent, and what it is given for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gymkit.agents.desk import Desk
from gymkit.agents.harness import API_KEY, Harness
from gymkit.errors import MissingExtra

if TYPE_CHECKING:
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient


@dataclass(frozen=True, slots=True)
class Kit:
    """What a user's function makes its agent of, anew for each rollout."""

    model: Any
    """The model, as an object of the framework's own; its calls are recorded."""
    tools: list[Any]
    """The environment's tools, as the framework's own; they run in the rollout's session."""
    folder: Path
    """A folder of the rollout's own, empty but for the run's skills, and gone when it ends."""
    request: dict[str, Any]
    """The task's request: ``input``, ``tools``, and what else it sets."""
    skills: Path | None = None
    """The folder of the run's skills, one folder each with a ``SKILL.md``; None for a run without any."""


Build = Callable[[Kit], Any]
"""From a kit to an agent of the framework."""


class Framework(Harness):
    """Base of the adapters. ``build`` makes the agent. Raises MissingExtra where ``modules`` cannot be imported."""

    modules: ClassVar[tuple[str, ...]]
    """What has to be installed."""

    def __init__(self, build: Build) -> None:
        for module in self.modules:
            if find_spec(module) is None:
                raise MissingExtra(module, self.label, f"an agent of {self.label}")
            import_module(module)  # seconds, which are better spent here than in the loop of all rollouts
        self._build = build

    def made(self, desk: Desk, model: Any, tools: list[Any]) -> Any:
        """The agent, made for the rollout at ``desk``."""
        return self._build(Kit(model, tools, desk.folder, desk.request, desk.skills))

    @cached_property
    def http(self) -> DefaultAsyncHttpxClient:
        """Connections to the model's address: no proxy of the environment's, no bound but the rollout's."""
        from openai import DefaultAsyncHttpxClient

        return DefaultAsyncHttpxClient(trust_env=False, timeout=None)

    @cached_property
    def sync_http(self) -> DefaultHttpxClient:
        """The same for what works in threads."""
        from openai import DefaultHttpxClient

        return DefaultHttpxClient(trust_env=False, timeout=None)

    def reach(self, desk: Desk) -> dict[str, Any]:
        """What OpenAI's client is made with; whether to ask again is for the model server to decide."""
        return {"base_url": f"{desk.seat.model_url}/v1", "api_key": API_KEY, "max_retries": 0, "timeout": None}

    async def aclose(self) -> None:
        """Let go of the connections."""
        if "http" in self.__dict__:
            await self.http.aclose()
        if "sync_http" in self.__dict__:
            self.sync_http.close()
