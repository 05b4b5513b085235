"""``gymkit eval aggregate``: the files of several runs as one, with their metrics."""

from __future__ import annotations

from pathlib import Path

import typer
from pydantic import BaseModel

from gymkit.cli.tokens import settings_of
from gymkit.collect.aggregation import aggregate_files
from gymkit.config import Config


class AggregateSettings(BaseModel):
    """The settings of ``eval aggregate``, by NeMo Gym's names."""

    input_glob: str
    """Globs of result files, separated by commas."""
    output_jsonl_fpath: str
    """The merged run; the metrics stand beside it."""
    merge_shards: bool = True
    """Whether the merged run is written, not only its metrics."""
    count_failure_classes_as_zero: list[str] = []
    """Classes of failures that count as zero in the metrics."""
    count_missing_rollouts_as_zero: bool = False
    """Whether planned rollouts without any row count as zero in the metrics."""


def aggregate(config: Config) -> None:
    """Write the merged run and its metrics, and say what they rest on. Raises ConfigError, StoreError."""
    settings = settings_of(config, AggregateSettings)
    found = aggregate_files(
        settings.input_glob,
        Path(settings.output_jsonl_fpath),
        merge=settings.merge_shards,
        zero_classes=settings.count_failure_classes_as_zero,
        zero_missing=settings.count_missing_rollouts_as_zero,
    )
    typer.echo(str(found))
