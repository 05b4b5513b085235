"""YAML files, ``env.yaml`` and command-line tokens, made into typed configuration."""

from gymkit.config.config import Config, HeadServer, load
from gymkit.config.instance import Implementation, Implementations, ServerInstance, ServerReference
from gymkit.config.keys import SERVER_TYPES
from gymkit.config.secret import redacted

__all__ = [
    "SERVER_TYPES",
    "Config",
    "HeadServer",
    "Implementation",
    "Implementations",
    "ServerInstance",
    "ServerReference",
    "load",
    "redacted",
]
