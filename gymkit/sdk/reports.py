"""Two runs' metrics files compared: NeMo Gym's report, and beside it the paired comparison that it lacks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from gymkit.collect.comparison import compare_agents
from gymkit.collect.comparison_report import Report
from gymkit.collect.metrics_file import Agent, MetricsFile
from gymkit.errors import ConfigError


def report(
    baseline: str | os.PathLike[str],
    candidate: str | os.PathLike[str],
    *,
    agent: str | None = None,
    baseline_agent: str | None = None,
    candidate_agent: str | None = None,
    command: str = "",
) -> Report:
    """Compare the metrics files beside two main files, agent by agent.

    By default every agent of both runs; ``agent`` takes one, and ``baseline_agent`` and ``candidate_agent`` one of
    each run. Raises StoreError for a file that cannot be used, ConfigError when there is nothing to compare.
    """
    there, here = MetricsFile.read(baseline), MetricsFile.read(candidate)
    pairs, skipped = _pairs(there, here, agent, baseline_agent, candidate_agent)
    agents = [(there.agent(old), here.agent(new)) for old, new in pairs]
    return Report(
        baseline=there,
        candidate=here,
        comparisons=[compare_agents(old, new) for old, new in agents],
        command=command,
        skipped=skipped,
        paired={old.name: paired for old, new in agents if (paired := _paired(old, new, there, here))},
    )


def _pairs(
    there: MetricsFile, here: MetricsFile, agent: str | None, old: str | None, new: str | None
) -> tuple[list[tuple[str, str]], dict[str, list[str]]]:
    if old or new or agent:
        one = agent if not (old and new) else None
        return [(old or one or there.only("baseline"), new or one or here.only("candidate"))], {}
    both = sorted(there.entries.keys() & here.entries.keys())
    if not both:
        raise ConfigError(
            f"no agent is in both runs: {', '.join(there.names)} in {there.path}, {', '.join(here.names)} in "
            f"{here.path}; give --baseline-agent and --candidate-agents"
        )
    left = {"baseline": sorted(there.entries.keys() - both), "candidate[0]": sorted(here.entries.keys() - both)}
    return [(name, name) for name in both], {run: names for run, names in left.items() if names}


def _paired(old: Agent, new: Agent, there: MetricsFile, here: MetricsFile) -> str:
    """The comparison by task, repeats averaged, in words; empty where no task of both has a reward."""
    import pandas as pd  # half a second, after the mistakes of usage

    from gymkit import stats

    frames = [pd.DataFrame(_rewards(run), columns=["task_index", "rollout_index", "reward"]) for run in (new, old)]
    names = (here.label, there.label) if here.label != there.label else ("candidate", "baseline")
    try:
        return str(stats.compare(frames[0], frames[1], names=names, task="task_index"))
    except ConfigError:
        return ""


def _rewards(run: Agent) -> Iterator[tuple[Any, Any, Any]]:
    for group in run.groups:
        for info in group.get("rollout_infos") or ():
            if isinstance(info, Mapping) and info.get("reward") is not None:
                yield group["_ng_task_index"], info.get("_ng_rollout_index", 0), info["reward"]
