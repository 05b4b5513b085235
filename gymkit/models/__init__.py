"""The model servers we ship, by name; each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from pydantic import BaseModel

from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.servers.model import ModelServer

SHIPPED = {
    "local_model": ("local", "LocalModel", "LocalModelConfig"),
    "openai_model": ("openai", "OpenAIModel", "OpenAIModelConfig"),
    "scripted_model": ("scripted", "ScriptedModel", "ScriptedModelConfig"),
    "vllm_model": ("chat", "ChatModel", "ChatModelConfig"),
}
"""Implementation to module, class and the model of its settings."""


def load(implementation: str) -> tuple[Callable[..., ModelServer], type[BaseModel]]:
    """The server class of an implementation and the model of its settings: ``server(name, config, capture=…)``.

    Raises ConfigError with the nearest name.
    """
    if implementation not in SHIPPED:
        raise ConfigError(f"there is no model server {implementation!r}; {nearest(implementation, list(SHIPPED))}")
    place, server, config = SHIPPED[implementation]
    module = import_module(f"gymkit.models.{place}")
    return getattr(module, server), getattr(module, config)
