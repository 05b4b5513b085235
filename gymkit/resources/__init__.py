"""The resources servers we ship, by name; each is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gymkit.errors import ConfigError
from gymkit.nearest import closest, nearest
from gymkit.servers.resources import ResourcesServer
from gymkit.shipped import ENVIRONMENT_ALIASES

SHIPPED = {"counter": "Counter", "synonyms": "Synonyms", "weather": "Weather"}
"""Implementation to class; the module has the implementation's name, and so has its task file under ``data/``."""

ALIASES = ENVIRONMENT_ALIASES
"""NeMo Gym's names for the same environments."""


def canonical(name: str) -> str:
    """Our name for an environment. Raises ConfigError with the nearest name."""
    name = ALIASES.get(name, name)
    if name not in SHIPPED:
        known = [*SHIPPED, *ALIASES] if closest(name, [*SHIPPED, *ALIASES]) else SHIPPED
        raise ConfigError(f"there is no environment {name!r}; {nearest(name, known)}")
    return name


def load(name: str) -> type[ResourcesServer[Any]]:
    """The server class for an implementation or an alias. Raises ConfigError."""
    name = canonical(name)
    server: type[ResourcesServer[Any]] = getattr(import_module(f"gymkit.resources.{name}"), SHIPPED[name])
    return server
