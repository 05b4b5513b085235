"""What stands on the command line, as configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer
from pydantic import BaseModel

from gymkit.config import Config, load
from gymkit.errors import ConfigError
from gymkit.sdk.catalogue import KNOWN

Settings = TypeVar("Settings", bound=BaseModel)

_FLAGS = {
    "input_jsonl_fpath": "--input",
    "output_jsonl_fpath": "--output",
    "agent_name": "--agent",
    "rollouts_jsonl_fpath": "--rollouts",
    "baseline_rollouts_jsonl_fpath": "--baseline",
    "candidate_rollouts_jsonl_fpaths": "--candidates",
}
"""The long forms of settings that a command cannot do without."""


def loaded(tokens: Sequence[str] | None, flags: Mapping[str, Any], search_dirs: Sequence[Path] | None) -> Config:
    """The configuration of tokens and flags (None: not given). Raises ConfigError."""
    given = {key: value for key, value in flags.items() if value is not None}
    return load(tokens or (), flags=given, search_dirs=search_dirs or (), implementations=KNOWN)


def settings_of(config: Config, model: type[Settings]) -> Settings:
    """The command's own settings. A wrong or missing one is wrong usage, exit status 2."""
    try:
        return config.settings(model)
    except ConfigError as error:
        told = str(error)
        for name, flag in _FLAGS.items():
            told = told.replace(f"give +{name}=…", f"give {flag}, or +{name}=…")
        raise typer.BadParameter(told) from error
