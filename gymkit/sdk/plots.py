"""The plots of a run, by what they show: ``rollouts.plot.rewards()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gymkit.sdk.rollouts import Rollouts
    from gymkit.views.figure import Plot


class Plots:
    """The plots of one run. Each is a picture for the cell, ``.alt`` the same in words, ``.figure`` matplotlib's.

    They need matplotlib (extra ``notebook``); without it each raises MissingExtra.
    """

    def __init__(self, rollouts: Rollouts) -> None:
        self._rollouts = rollouts

    def rewards(self) -> Plot:
        """How the rewards are distributed, and how many rollouts have none."""
        from gymkit.views import plots

        return plots.rewards(self._rollouts.rewards)

    def tasks(self) -> Plot:
        """A map of every task and repeat, the tasks with the lowest mean first."""
        from gymkit.views import plots

        return plots.tasks(self._rollouts.rewards)

    def pass_at_k(self) -> Plot:
        """pass@k and pass^k over k, with intervals over tasks."""
        from gymkit.views import plots

        return plots.pass_at_k(self._rollouts.summary().frame)

    def forest(self, *baselines: Rollouts, cluster: str | None = None) -> Plot:
        """The difference from each of ``baselines`` with its interval, paired by task as ``compare`` does it.

        Raises ConfigError without a baseline, and for one that has no task in common.
        """
        import pandas as pd

        from gymkit.errors import ConfigError
        from gymkit.views import plots

        if not baselines:
            raise ConfigError("forest() needs a run to compare with, such as rollouts.plot.forest(baseline)")
        rows = []
        for baseline in baselines:
            comparison = self._rollouts.compare(baseline, cluster=cluster)
            found = comparison["difference"]
            rows.append((f"− {comparison.names[1]}", found.value, found.low, found.high))
        return plots.forest(pd.DataFrame(rows, columns=["label", "value", "low", "high"]), of=self._rollouts.title)

    def costs(self) -> Plot:
        """How long rollouts took, and how many tokens they used."""
        from gymkit.views import plots

        return plots.costs(self._rollouts.rewards)

    def __repr__(self) -> str:
        return f"<Plots of {self._rollouts.title}: rewards, tasks, pass_at_k, forest, costs>"
