"""Whether a run's evidence is sound: ``rollouts.health()``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from gymkit.collect.health import Examined

if TYPE_CHECKING:
    import pandas as pd


class Health:
    """A verdict on each rollout, what was found, and what could not be told."""

    def __init__(self, examined: Examined) -> None:
        self.examined = examined

    @property
    def frame(self) -> pd.DataFrame:
        """One row per result: ``task_index``, ``rollout_index`` (Int64), ``verdict`` (category: healthy, unhealthy,
        unobserved), ``findings``, ``calls``, ``failed_calls`` (Int64), ``unobserved`` (string: checks that cannot
        tell)."""
        from gymkit.frames import health

        return health.verdicts(self.examined.verdicts)

    @property
    def findings(self) -> pd.DataFrame:
        """One row per finding: ``task_index``, ``rollout_index`` (Int64), ``check`` (category), ``locator``,
        ``detail`` (string)."""
        from gymkit.frames import health

        return health.findings(self.examined.verdicts)

    def write(self) -> tuple[Path, Path]:
        """Write ``X_rollout_verdicts.jsonl`` and ``X_quality_summary.json`` beside the run and return their paths."""
        return self.examined.write(f"{self.examined.path.stem}_")

    def __repr__(self) -> str:
        verdicts = self.examined.verdicts
        counts = Counter(each.verdict for each in verdicts)
        issues = Counter(finding.check for each in verdicts for finding in each.findings)
        told = ", ".join(f"{counts[name]} {name}" for name in ("healthy", "unhealthy", "unobserved"))
        found = "; ".join(f"{count} {check}" for check, count in issues.most_common()) or "nothing found"
        return f"<Health {len(verdicts)} rows: {told}; {found}>"
