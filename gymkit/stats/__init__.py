"""DataFrame in, DataFrame out: how good, how sure, better than the other one.

A ``rewards`` frame goes in, or any table with a task column and ``reward``. Tasks are the units: rollouts of one task
are never counted as independent evidence, and a rollout without a score is never counted as zero.
"""

from gymkit.stats.causes import failures_by_cause
from gymkit.stats.comparison import Comparison, compare
from gymkit.stats.interval import Interval, cluster_mean, cluster_se, effective_size, wilson
from gymkit.stats.paired import (
    holm,
    mcnemar_exact,
    minimum_detectable,
    paired_difference,
    sign_flip,
    tango,
    tasks_needed,
)
from gymkit.stats.passk import majority_at_k, pass_at_k, pass_hat_k
from gymkit.stats.ranking import Ranking, compare_many
from gymkit.stats.slices import by
from gymkit.stats.spread import Spread, spread
from gymkit.stats.summary import Summary, summary

__all__ = [
    "Comparison",
    "Interval",
    "Ranking",
    "Spread",
    "Summary",
    "by",
    "cluster_mean",
    "cluster_se",
    "compare",
    "compare_many",
    "effective_size",
    "failures_by_cause",
    "holm",
    "majority_at_k",
    "mcnemar_exact",
    "minimum_detectable",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "sign_flip",
    "spread",
    "summary",
    "tango",
    "tasks_needed",
    "wilson",
]
