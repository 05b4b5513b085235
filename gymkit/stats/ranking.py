"""Several runs against one baseline, with the p-values corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from gymkit.errors import ConfigError
from gymkit.stats import display
from gymkit.stats.comparison import Comparison, compare
from gymkit.stats.evidence import judge
from gymkit.stats.interval import Range
from gymkit.stats.paired import holm

COLUMNS = ("mean", "baseline_mean", "difference", "low", "high", "p", "p_holm")
COUNTS = ("wins", "losses", "ties", "paired_tasks")


@dataclass(frozen=True, repr=False)
class Ranking:
    """Runs against a baseline, best difference first."""

    frame: pd.DataFrame
    """One row a run: run string; mean, baseline_mean (over the paired tasks), difference, low, high, p, p_holm Float64;
    wins, losses, ties, paired_tasks Int64; verdict string, from p_holm."""
    pairs: dict[str, Comparison]
    """Each run's own comparison with the baseline; its verdict is not corrected."""
    baseline: str
    """Name of the baseline."""
    level: float
    """Confidence level."""

    def __getitem__(self, run: str) -> Comparison:
        """The comparison of one run with the baseline."""
        return self.pairs[run]

    def _lines(self) -> list[list[str]]:
        return [
            [
                str(row["run"]),
                display.number(_float(row["mean"])),
                display.span(_float(row["difference"]), _float(row["low"]), _float(row["high"]), sign=True),
                display.p_text(_float(row["p_holm"])),
                f"{row['wins']}/{row['losses']}/{row['ties']}",
                str(row["verdict"]),
            ]
            for _, row in self.frame.iterrows()
        ]

    def __repr__(self) -> str:
        head = f"{display.plural(len(self.pairs), 'run')} against {self.baseline} (p corrected after Holm)"
        lines = [f"{run}: {span} · {p} · {verdict}" for run, _, span, p, _, verdict in self._lines()]
        notes = [f"note: {name}: {text}" for name, pair in self.pairs.items() for text in pair.warnings]
        return "\n".join(display.plain(line) for line in [head, *lines, *notes])

    def _repr_html_(self) -> str:
        lines = [[*line[:3], line[3].removeprefix("p "), *line[4:]] for line in self._lines()]
        head = ["run", "mean", f"difference [{self.level:.0%}]", "p (Holm)", "won/lost/tied", "verdict"]
        body = display.table(head, lines, "Means and differences over the tasks that each pair shares.")
        notes = [f"{name}: {text}" for name, pair in self.pairs.items() for text in pair.warnings]
        return display.card(f"{display.plural(len(self.pairs), 'run')} against {self.baseline}", "", notes, body)


def compare_many(
    runs: Mapping[str, pd.DataFrame],
    *,
    baseline: str,
    task: str | None = None,
    cluster: str | None = None,
    reward_range: Range | None = None,
    level: float = 0.95,
) -> Ranking:
    """Compare each of ``runs`` (name: ``rewards`` frame) with the one called ``baseline``.

    The other parameters are those of ``compare``. P-values are corrected for the number of runs (Holm 1979);
    intervals are not. Raises ConfigError when ``baseline`` is not among the names or nothing is left to compare.
    """
    if baseline not in runs or len(runs) < 2:
        raise ConfigError(
            f"baseline {baseline!r} and at least one other run are needed; given: {', '.join(runs) or 'none'}"
        )
    pairs = {
        name: compare(
            run,
            runs[baseline],
            names=(name, baseline),
            task=task,
            cluster=cluster,
            reward_range=reward_range,
            level=level,
        )
        for name, run in runs.items()
        if name != baseline
    }
    corrected = holm([pair["p_value"].value for pair in pairs.values()])
    rows = [_row(name, pair, p, level) for (name, pair), p in zip(pairs.items(), corrected, strict=True)]
    frame = pd.DataFrame(rows).astype(
        {"run": "string", **dict.fromkeys(COLUMNS, "Float64"), **dict.fromkeys(COUNTS, "Int64"), "verdict": "string"}
    )
    frame = frame.sort_values("difference", ascending=False, kind="stable").reset_index(drop=True)
    return Ranking(frame, pairs, baseline, level)


def _row(name: str, pair: Comparison, p_holm: float, level: float) -> dict[str, object]:
    difference, p = pair["difference"], pair["p_value"].value
    numbers = (pair["mean_a"].value, pair["mean_b"].value, difference.value, difference.low, difference.high, p, p_holm)
    counts = {count: int(pair[count].value) for count in COUNTS}
    return {
        "run": name,
        **dict(zip(COLUMNS, numbers, strict=True)),
        **counts,
        "verdict": judge(difference, p_holm, level),
    }


def _float(value: object) -> float:
    return float("nan") if pd.isna(value) else float(value)  # type: ignore[call-overload,arg-type]
