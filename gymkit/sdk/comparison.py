"""Two runs compared: the numbers, and the two conversations behind each."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gymkit.sdk.rollouts import Rollouts
    from gymkit.stats import Comparison as Statistics
    from gymkit.stats import Interval
    from gymkit.views.comparison import PairBrowser


class Comparison:
    """What ``a.compare(b)`` says, always first minus second; ``view`` opens the conversations.

    ``comparison["difference"].low`` is a number of ``frame`` with its interval.
    """

    def __init__(self, statistics: Statistics, a: Rollouts, b: Rollouts) -> None:
        self.statistics = statistics
        """The numbers alone, as ``stats.compare`` returns them."""
        self.a = a
        """The first run."""
        self.b = b
        """The baseline."""

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` (the first run) or ``inconclusive``."""
        return self.statistics.verdict

    @property
    def frame(self) -> pd.DataFrame:
        """One row a number: metric string, value, low, high Float64, n Int64, method string."""
        return self.statistics.frame

    @property
    def tasks(self) -> pd.DataFrame:
        """One row a task of either run: outcome, means, difference, and the rollouts to look at."""
        return self.statistics.tasks

    @property
    def flips(self) -> pd.DataFrame:
        """The tasks that were won or lost, largest difference first."""
        return self.statistics.flips

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before the verdict is believed."""
        return self.statistics.warnings

    @property
    def names(self) -> tuple[str, str]:
        """What the two runs are called."""
        return self.statistics.names

    def __getitem__(self, name: str) -> Interval:
        """Value and interval of one metric."""
        return self.statistics[name]

    def view(self, task: Hashable | None = None) -> PairBrowser:
        """Look through the tasks, those lost or won first, with two conversations side by side.

        ``task`` is the one to open, as it is named in ``tasks``. Raises ConfigError when it is not there.
        """
        from gymkit.views.comparison import PairBrowser, Run

        a, b = (
            Run(name, run.rewards, run.conversation) for name, run in zip(self.names, (self.a, self.b), strict=True)
        )
        view = PairBrowser(self.tasks, a, b, title=self.statistics.headline)
        if task is not None:
            view.select(task)
        return view

    def __repr__(self) -> str:
        return repr(self.statistics)

    def _repr_html_(self) -> str:
        return self.statistics._repr_html_()
