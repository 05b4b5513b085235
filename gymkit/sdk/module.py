"""A Python file of the user's, loaded as a module."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from gymkit.errors import ConfigError


def load_module(path: Path, name: str) -> ModuleType:
    """The module in the file ``path``, loaded anew and known as ``name``. Raises ConfigError."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is no Python module")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module
