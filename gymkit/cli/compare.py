"""``gymkit eval compare``: two runs by their metrics files."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Literal

import typer
from pydantic import BaseModel, Field

from gymkit.cli.tokens import settings_of
from gymkit.config import Config
from gymkit.sdk.reports import report


class CompareSettings(BaseModel):
    """The settings of ``eval compare``, by NeMo Gym's names."""

    baseline_rollouts_jsonl_fpath: str
    """Main file of the run to compare with; only the metrics beside it are read."""
    candidate_rollouts_jsonl_fpaths: list[str] = Field(min_length=1, max_length=1)
    """Main file of the run that is compared; one, as at NeMo Gym (``gk.compare_many`` takes several)."""
    agent_name: str | None = None
    """Only this agent."""
    baseline_agent_name: str | None = None
    """The agent of the baseline."""
    candidate_agent_names: list[str] | None = Field(None, min_length=1, max_length=1)
    """The agent of the candidate."""
    output_dirpath: str | None = None
    """Folder of the report, by default the candidate's."""
    report_format: Literal["md", "json", "both"] = "both"
    """Which files are written."""


def compare(config: Config) -> None:
    """Write the report, and print the comparison by task. Raises ConfigError, StoreError."""
    settings = settings_of(config, CompareSettings)
    candidate = settings.candidate_rollouts_jsonl_fpaths[0]
    found = report(
        settings.baseline_rollouts_jsonl_fpath,
        candidate,
        agent=settings.agent_name,
        baseline_agent=settings.baseline_agent_name,
        candidate_agent=next(iter(settings.candidate_agent_names or ()), None),
        command=shlex.join(["gymkit", *sys.argv[1:]]),
    )
    for name, told in found.paired.items():
        typer.echo(f"{name}\n{told}")
    folder = Path(settings.output_dirpath) if settings.output_dirpath else Path(candidate).parent
    for path in found.write(folder, settings.report_format):
        typer.echo(str(path))
