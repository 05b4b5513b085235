"""The names of a run's files: all of them follow from the output path."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The files of one run; for ``results/rollouts.jsonl`` the others are ``results/rollouts_….``"""

    rollouts: Path
    """Scored and masked rows, in the order they finished."""
    failures: Path
    """One row for each failed attempt; there even if empty."""
    materialized: Path
    """The planned rollouts, written before the first starts."""
    metrics: Path
    """Aggregate metrics, written at the end."""

    @classmethod
    def of(cls, output: str | os.PathLike[str]) -> Self:
        """The family of ``output``, the path of the main file."""
        path = Path(output)
        return cls(
            path,
            path.with_name(f"{path.stem}_failures.jsonl"),
            path.with_name(f"{path.stem}_materialized_inputs.jsonl"),
            path.with_name(f"{path.stem}_aggregate_metrics.json"),
        )
