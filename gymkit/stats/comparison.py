"""Is one run better than another on the same tasks?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gymkit.stats import display
from gymkit.stats.evidence import POWER, Pairs, judge
from gymkit.stats.interval import Interval, Range
from gymkit.stats.metrics import NAN, metric, metric_frame, point
from gymkit.stats.pairing import paired_tasks, read_pair
from gymkit.stats.scores import STATUSES, Scores


@dataclass(frozen=True, repr=False)
class Comparison:
    """What two runs say together, always first minus second."""

    frame: pd.DataFrame
    """One row a number: metric string, value Float64, low Float64, high Float64, n Int64, method string."""
    tasks: pd.DataFrame
    """One row a task of either run, with outcome and the rollouts to look at, as ``paired_tasks`` describes."""
    verdict: str
    """``better``, ``worse`` (the first run) or ``inconclusive``; both test and interval must agree."""
    warnings: tuple[str, ...]
    """What to know before the verdict is believed."""
    names: tuple[str, str]
    """What the two runs are called."""
    level: float
    """Confidence level of the interval and of the verdict."""

    def __getitem__(self, name: str) -> Interval:
        """Value and interval of one metric: ``comparison["difference"].low``."""
        return metric(self.frame, name)

    @property
    def flips(self) -> pd.DataFrame:
        """The tasks that were won or lost, largest difference first, with the rollout keys of both sides."""
        changed = self.tasks[self.tasks["outcome"].isin(["win", "loss"])]
        order = changed["difference"].abs().sort_values(ascending=False, kind="stable").index
        return changed.loc[order].reset_index(drop=True)

    @property
    def headline(self) -> str:
        """The difference and the verdict on one line."""
        found, p = self["difference"], self["p_value"]
        text = display.span(found.value, found.low, found.high, sign=True)
        method = f" ({p.method})" if not np.isnan(p.value) else ""
        return f"{self.names[0]} − {self.names[1]}: {text} · {display.p_text(p.value)}{method} · {self.verdict}"

    @property
    def facts(self) -> str:
        """Pairs, wins and losses, and what this run could have seen, on one line."""
        wins, losses, ties = (int(self[name].value) for name in ("wins", "losses", "ties"))
        parts = [f"{display.plural(wins + losses + ties, 'paired task')}: {wins} won, {losses} lost, {ties} tied"]
        left = [
            (self["unpaired_a"].value, f"only in {self.names[0]}"),
            (self["unpaired_b"].value, f"only in {self.names[1]}"),
            (self["without_score"].value, "without a score on one side"),
        ]
        parts += [f"{int(count)} {why}" for count, why in left if count]
        parts.append(f"sees differences from {display.number(self['minimum_detectable'].value)} on ({POWER:.0%} power)")
        more = self["more_tasks"].value
        parts += [f"about {int(more):,} more task{'s' * (more != 1)} would settle it"] if more > 0 else []
        return " · ".join(parts)

    def __repr__(self) -> str:
        lines = [self.headline, self.facts, *(f"note: {text}" for text in self.warnings)]
        return "\n".join(display.plain(line) for line in lines)

    def _repr_html_(self) -> str:
        shown = [(name, self[name]) for name in self.frame["metric"]]
        rows = [
            [self._label(name), *display.cells(cell.value, cell.low, cell.high, name.startswith("diff")), cell.method]
            for name, cell in shown
            if not np.isnan(cell.value)
        ]
        body = display.table(["", "value", f"{self.level:.0%} interval", "method"], rows, "All numbers")
        flips = self.flips.head(20)
        caption = f"{len(flips)} of {len(self.flips)} tasks that were won or lost, largest difference first"
        columns = ["task", "mean_a", "mean_b", "difference", "rollout_index_a", "rollout_index_b"]
        head = ["task", *self.names, "difference", f"rollout of {self.names[0]}", f"rollout of {self.names[1]}"]
        lines = [
            [str(row[0]), *(display.number(float(value)) for value in row[1:4]), *(str(key) for key in row[4:])]
            for row in flips[columns].itertuples(index=False)
        ]
        table = display.table(head, lines, caption) if lines else ""
        return display.card(self.headline, self.facts, self.warnings, table + display.folded("All numbers", body))

    def _label(self, name: str) -> str:
        for side, run in zip(("_a", "_b"), self.names, strict=True):
            if name.endswith(side):
                return f"{name.removesuffix(side).replace('_', ' ')} ({run})"
        return name.replace("_", " ")


def compare(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    names: tuple[str, str] = ("a", "b"),
    task: str | None = None,
    cluster: str | None = None,
    reward_range: Range | None = None,
    level: float = 0.95,
) -> Comparison:
    """Compare run ``a`` with run ``b`` (the baseline), task by task; repeats of a task are averaged first.

    ``a`` and ``b`` are ``rewards`` frames, or tables with a task column and ``reward``. ``task`` names the column that
    pairs them (default: ``task_id`` where both have it throughout, else ``task_index``); ``cluster``, ``reward_range``
    and ``level`` are as in ``summary``. Only tasks with a scored rollout on both sides count; the others are reported.

    Rewards of 0 and 1 with one rollout a task: Tango's interval and the exact McNemar test. Otherwise: a paired
    interval over tasks (or clusters) and the sign-flip test. Raises ConfigError as ``summary`` does, and when the runs
    have no task in common.
    """
    first, second = read_pair(a, b, task, cluster, reward_range)
    table = paired_tasks(first, second)
    pairs = Pairs.of(first, table, level)
    found = _coverage(first, second, table) | pairs.means() | pairs.test() | _filled(first, second, pairs)
    verdict = judge(found["difference"], found["p_value"].value, level)
    found |= pairs.power(found["difference"], verdict)
    notes = _warnings(first, found, names, verdict)
    return Comparison(metric_frame(found), table, verdict, notes, names, level)


def _coverage(a: Scores, b: Scores, table: pd.DataFrame) -> dict[str, Interval]:
    outcomes = table["outcome"].value_counts()
    names = {"paired_tasks": ["win", "loss", "tie"], "unpaired_a": ["only in a"], "unpaired_b": ["only in b"]}
    names["without_score"] = ["no score"]
    found = {name: point(int(outcomes[kinds].sum()), len(table), "count") for name, kinds in names.items()}
    for side, run in (("a", a), ("b", b)):
        counts = run.counts
        found |= {f"{name}_{side}": point(counts[name], len(run.frame), "count") for name in ("expected", *STATUSES)}
    return found


def _filled(a: Scores, b: Scores, pairs: Pairs) -> dict[str, Interval]:
    """The difference over all tasks planned in both, had the unscored rollouts had the rewards named."""
    names = ("difference_unscored_lowest", "difference_lower_bound", "difference_upper_bound")
    if pairs.reward_range is None:
        return {name: point(NAN, 0, "none: no reward_range") for name in names}
    low, high = pairs.reward_range
    means = {(side, end): _filled_means(run, end) for side, run in (("a", a), ("b", b)) for end in (low, high)}
    labels = a.frame.drop_duplicates("task").set_index("task")["cluster"]
    found = {}
    for name, (end_a, end_b) in zip(names, ((low, low), (low, high), (high, low)), strict=True):
        difference = (means["a", end_a] - means["b", end_b]).dropna()
        interval = pairs.interval(difference.to_numpy(dtype=float), labels.reindex(difference.index).to_numpy())
        method = f"unscored as {end_a:g} in a and {end_b:g} in b; {interval.method}"
        found[name] = Interval(interval.value, interval.low, interval.high, interval.n, method)
    return found


def _filled_means(run: Scores, end: float) -> pd.Series:
    return pd.Series(run.filled(end)).groupby(run.frame["task"], sort=False).mean()


def _warnings(a: Scores, found: dict[str, Interval], names: tuple[str, str], verdict: str) -> tuple[str, ...]:
    texts = []
    unscored = sum(found[f"expected_{side}"].value - found[f"scored_{side}"].value for side in ("a", "b"))
    signs = {name: _sign(cell) for name, cell in found.items() if name.startswith("difference")}
    if unscored and a.reward_range is None:
        texts.append("rewards lie outside 0..1, so there are no bounds: give reward_range=(lowest, highest).")
    elif unscored and len(set(signs.values())) > 1:
        lowest, lower, upper = (display.number(found[name].value, sign=True) for name in list(signs)[1:])
        texts.append(
            f"the conclusion depends on the {display.plural(int(unscored), 'unscored rollout')}: counted as lowest on "
            f"both sides the difference is {lowest}, at worst {lower}, at best {upper}."
        )
    failed = [found[f"failed_{side}"].value / max(found[f"expected_{side}"].value, 1) for side in ("a", "b")]
    if abs(failed[0] - failed[1]) >= 0.05:
        shares = " and ".join(f"{share:.0%} in {name}" for share, name in zip(failed, names, strict=True))
        texts.append(f"rollouts failed in unequal shares, {shares}: the tasks that remain are a choice.")
    if 0 < found["difference"].n < 5:
        texts.append(
            f"only {display.plural(found['difference'].n, 'independent unit')}: other tasks could go otherwise."
        )
    return tuple(texts)


def _sign(cell: Interval) -> int:
    return 1 if cell.low > 0 else -1 if cell.high < 0 else 0
