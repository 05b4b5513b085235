"""Agents written with somebody's framework, by the framework's name; each is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module

from gymkit.agents.framework import Build, Framework
from gymkit.errors import ConfigError
from gymkit.nearest import nearest

SHIPPED = {
    "langgraph": ("langgraph", "LangGraph"),
    "openai-agents": ("openai_agents", "OpenAIAgents"),
    "pydantic-ai": ("pydantic_ai", "PydanticAI"),
    "smolagents": ("smolagents", "Smolagents"),
}
"""Framework to module and class."""


def adapter(framework: str, build: Build) -> Framework:
    """The harness for what ``build`` makes. Raises ConfigError with the nearest name, or MissingExtra."""
    if framework not in SHIPPED:
        raise ConfigError(f"there is no adapter for {framework!r}; {nearest(framework, list(SHIPPED))}")
    module, name = SHIPPED[framework]
    made: Framework = getattr(import_module(f"gymkit.agents.frameworks.{module}"), name)(build)
    return made
