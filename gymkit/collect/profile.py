"""``gymkit eval profile``: a run's rollouts by task, by agent and by repeat, in three files beside them.

Keys and values are NeMo Gym's (0.7.0). What was planned comes from the materialized inputs, so a rollout that is
missing is seen; a masked one is neither measured nor missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymkit.collect.lines import read
from gymkit.errors import StoreError
from gymkit.servers.aggregate import completion, coverage, key_of, measured, rollout_info
from gymkit.servers.statistics import (
    AGENT,
    ROLLOUT,
    TASK,
    Measured,
    across_repeats,
    columns_of,
    describe,
    integral,
    repeat_level,
)
from gymkit.wire import codec
from gymkit.wire.lines import Problem

Row = Mapping[str, Any]
Key = tuple[int, int]
SHOWN = 10
"""How many rollouts an error names."""


@dataclass(frozen=True)
class Profile:
    """What was measured, at three grains."""

    groups: list[dict[str, Any]]
    """One entry per task (and agent, where one task went to several), with the input row as ``sample``."""
    agents: list[dict[str, Any]]
    """One entry per agent."""
    repeats: list[dict[str, Any]]
    """One entry per agent and rollout index; none for an agent with a single index."""


def profile(planned: Sequence[Row], results: Sequence[Row], *, partial: bool = False) -> Profile:
    """Profile ``results`` (main rows) against ``planned`` (materialized inputs).

    Raises StoreError when a rollout comes twice, was not planned, or, unless ``partial``, is missing.
    """
    _refuse_duplicates(planned, "the materialized inputs")
    _refuse_duplicates(results, "the rollouts")
    _refuse_gaps({key_of(row) for row in planned}, {key_of(row) for row in results}, partial)
    masked = {key_of(row) for row in results if row.get("mask_sample")}
    plan = {key_of(row): row for row in sorted(planned, key=key_of) if key_of(row) not in masked}
    scored = sorted((row for row in results if key_of(row) not in masked), key=key_of)
    label = labels([row for row in planned if key_of(row) not in masked])
    rollouts = [measured(row, label(plan[key_of(row)])) for row in scored]
    columns = columns_of(rollouts)
    whole = integral(rollouts, columns)
    repeats = repeat_level(rollouts, columns)
    return Profile(
        _by_task(plan, scored, rollouts, columns, whole, label),
        _by_agent(rollouts, columns, whole, across_repeats(repeats), _coverage_by_agent(planned, results)),
        repeats,
    )


def profile_files(materialized: Path, rollouts: Path, *, partial: bool = False) -> list[Path]:
    """Profile the run in two files and write ``_reward_profiling.jsonl``, ``_agent_metrics.json`` and
    ``_repeat_level_metrics.json`` beside ``rollouts``; returns their paths.

    Raises StoreError for a file that is not there or has a broken line, and as ``profile`` does.
    """
    found = profile(_rows(materialized), _rows(rollouts), partial=partial)
    contents = {
        "reward_profiling.jsonl": b"".join(codec.dumps(entry) + b"\n" for entry in found.groups),
        "agent_metrics.json": codec.dumps(found.agents),
        "repeat_level_metrics.json": codec.dumps(found.repeats),
    }
    written = [rollouts.with_name(f"{rollouts.stem}_{name}") for name in contents]
    for path, content in zip(written, contents.values(), strict=True):
        path.write_bytes(content)
    return written


def _rows(path: Path) -> list[dict[str, Any]]:
    problems: list[Problem] = []
    try:
        rows = [line.row for line in read(path, problems)]
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    if broken := [str(problem) for problem in problems if not problem.blank]:
        raise StoreError("; ".join(broken[:SHOWN]))
    return rows


def _by_task(
    plan: Mapping[Key, Row],
    scored: Sequence[Row],
    rollouts: Sequence[Measured],
    columns: Sequence[str],
    whole: bool,
    label: Callable[[Row], str | None],
) -> list[dict[str, Any]]:
    grouping = _grouping(plan.values(), label)
    expected = Counter(grouping(row) for row in plan.values())
    members: dict[tuple[int, str], list[int]] = {}
    for place, row in enumerate(scored):
        members.setdefault(grouping(plan[key_of(row)]), []).append(place)
    entries = []
    for (task, agent), places in sorted(members.items()):
        entry: dict[str, Any] = {TASK: task} | describe([rollouts[place] for place in places], columns, whole)
        if agent:
            entry[AGENT] = {"name": agent}
        first = plan[key_of(scored[places[0]])]
        entry["sample"] = {name: first[name] for name in first if name not in (TASK, ROLLOUT, "gymkit")}
        entry |= completion(len(places), expected[task, agent])
        entries.append(entry | {"rollout_infos": [rollout_info(scored[place]) for place in places]})
    return entries


def _grouping(plan: Iterable[Row], label: Callable[[Row], str | None]) -> Callable[[Row], tuple[int, str]]:
    """By task; by task and agent when some task went to more than one, the agent being "" otherwise."""
    pairs = {(row.get(TASK, 0), label(row) or "") for row in plan}
    several = len(pairs) > len({task for task, _ in pairs})
    return lambda row: (row.get(TASK, 0), (label(row) or "") if several else "")


def _by_agent(
    rollouts: Sequence[Measured],
    columns: Sequence[str],
    whole: bool,
    spread: Mapping[str, Mapping[str, float]],
    masked: dict[str, dict[str, int]],
) -> list[dict[str, Any]]:
    """Statistics of each agent; one whose every rollout is masked has its coverage only."""
    entries = []
    for agent in sorted({each.agent for each in rollouts if each.agent is not None}):
        own = [each for each in rollouts if each.agent == agent]
        entry = {**describe(own, columns, whole), AGENT: {"name": agent}, **spread.get(agent, {})}
        entries.append(entry | masked.pop(agent, {}))
    return entries + [{AGENT: {"name": agent}, **found} for agent, found in masked.items()]


def _coverage_by_agent(planned: Sequence[Row], results: Sequence[Row]) -> dict[str, dict[str, int]]:
    agents = {key_of(row): _agent_of(row) for row in planned}
    rows: dict[str, list[Row]] = {}
    for row in results:
        if agent := agents.get(key_of(row)):
            rows.setdefault(agent, []).append(row)
    return {agent: found for agent, own in rows.items() if (found := coverage(own))}


def labels(planned: Iterable[Row]) -> Callable[[Row], str | None]:
    """What to call whatever ran a row: its agent where that names one environment server, else the server."""
    agents: dict[str, str | None] = {}
    for row in planned:
        if server := _server_of(row):
            agents.setdefault(server, _agent_of(row))
    fronts = Counter(agents.values())
    names = {server: agent if agent and fronts[agent] == 1 else server for server, agent in agents.items()}
    while clashing := _clashing(names):
        names |= {server: server for server in clashing}
    return lambda row: names.get(_server_of(row) or "")


def _clashing(labels: Mapping[str, str]) -> list[str]:
    used = Counter(labels.values())
    return [server for server, label in labels.items() if used[label] > 1 and label != server]


def _server_of(row: Row) -> str | None:
    """What ran the row; files from before environment servers name the agent only."""
    server: str | None = row.get("_ng_environment_server")
    return server if server is not None else _agent_of(row)


def _agent_of(row: Row) -> str | None:
    name: str | None = (row.get(AGENT) or {}).get("name")
    return name


def _refuse_duplicates(rows: Iterable[Row], where: str) -> None:
    twice = sorted(key for key, count in Counter(map(key_of, rows)).items() if count > 1)
    if twice:
        raise StoreError(f"{where} hold {_listed(twice)} more than once; keep one row of each")


def _refuse_gaps(planned: set[Key], done: set[Key], partial: bool) -> None:
    if extra := sorted(done - planned):
        raise StoreError(f"the rollouts hold {_listed(extra)}, never planned; give the materialized inputs of this run")
    if (missing := sorted(planned - done)) and not partial:
        raise StoreError(
            f"the rollouts lack {_listed(missing)} of {len(planned)} planned; resume the run, "
            "or profile what there is with ++allow_partial_rollouts=true"
        )


def _listed(keys: Sequence[Key]) -> str:
    shown = ", ".join(f"{task}:{rollout}" for task, rollout in keys[:SHOWN])
    more = ", …" if len(keys) > SHOWN else ""
    return f"{len(keys)} rollout{'s' if len(keys) > 1 else ''} (task:rollout {shown}{more})"
