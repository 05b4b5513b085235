"""``gymkit eval profile``: per-task and per-repeat metrics of a finished run, without servers."""

from __future__ import annotations

from pathlib import Path

import typer
from pydantic import BaseModel

from gymkit.cli.tokens import settings_of
from gymkit.collect.artifacts import Artifacts
from gymkit.collect.profile import profile_files
from gymkit.config import Config


class ProfileSettings(BaseModel):
    """The settings of ``eval profile``, by NeMo Gym's names."""

    rollouts_jsonl_fpath: str
    """The main file of the run."""
    materialized_inputs_jsonl_fpath: str | None = None
    """Its planned rollouts, by default the file beside it."""
    allow_partial_rollouts: bool = False
    """Whether planned rollouts without a result are left out instead of refused."""


def profile(config: Config) -> None:
    """Write the profile's files beside the run and name them. Raises StoreError."""
    settings = settings_of(config, ProfileSettings)
    rollouts = Path(settings.rollouts_jsonl_fpath)
    planned = settings.materialized_inputs_jsonl_fpath
    materialized = Path(planned) if planned else Artifacts.of(rollouts).materialized
    for path in profile_files(materialized, rollouts, partial=settings.allow_partial_rollouts):
        typer.echo(str(path))
