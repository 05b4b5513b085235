"""gymkit: evaluate agents in environments, from a notebook.

``import gymkit as gk`` binds the public names and does nothing else; each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymkit import usersim as usersim
    from gymkit.errors import GymkitError as GymkitError
    from gymkit.sdk.agents import RemoteAgent as RemoteAgent
    from gymkit.sdk.bridge import enable_nested_asyncio as enable_nested_asyncio
    from gymkit.sdk.env import Env as Env
    from gymkit.sdk.function_agent import Agent as Agent
    from gymkit.sdk.judge import judge as judge
    from gymkit.sdk.models import Model as Model
    from gymkit.sdk.ranking import compare_many as compare_many
    from gymkit.sdk.rollouts import Rollouts as Rollouts
    from gymkit.sdk.simple_agent import SimpleAgent as SimpleAgent
    from gymkit.sdk.usersim import UserSimEpisode as UserSimEpisode
    from gymkit.usersim.scenario import Scenario as Scenario

__version__ = "0.1.0"

_HOME = {
    "Agent": "gymkit.sdk.function_agent",
    "Env": "gymkit.sdk.env",
    "GymkitError": "gymkit.errors",
    "Model": "gymkit.sdk.models",
    "RemoteAgent": "gymkit.sdk.agents",
    "Rollouts": "gymkit.sdk.rollouts",
    "Scenario": "gymkit.usersim.scenario",
    "SimpleAgent": "gymkit.sdk.simple_agent",
    "UserSimEpisode": "gymkit.sdk.usersim",
    "compare_many": "gymkit.sdk.ranking",
    "enable_nested_asyncio": "gymkit.sdk.bridge",
    "judge": "gymkit.sdk.judge",
}

_ROOMS = ("usersim",)
"""Modules with public names of their own (``gk.usersim.prepare``)."""

__all__ = [
    "Agent",
    "Env",
    "GymkitError",
    "Model",
    "RemoteAgent",
    "Rollouts",
    "Scenario",
    "SimpleAgent",
    "UserSimEpisode",
    "__version__",
    "compare_many",
    "enable_nested_asyncio",
    "judge",
    "usersim",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"gymkit.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gymkit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    if isinstance(value, type):
        value.__module__ = __name__  # a repr says gymkit.Env, wherever it lives
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
