"""The rows of several result files read as one run: which files, whose rows, and what became of the other rollouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any, Final

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.lines import read_whole
from gymkit.collect.metrics import stripped
from gymkit.errors import ConfigError, StoreError
from gymkit.servers.aggregate import key_of

Row = dict[str, Any]
Identity = tuple[str | None, int, int]
"""Who ran it (environment server, else agent), task and rollout: what names a rollout over several runs."""

_SIDECARS: Final = ("_failures", "_materialized_inputs")
_SERVER: Final = "_ng_environment_server"


def matching(patterns: str, output: Path) -> list[Path]:
    """The result files that ``patterns`` (globs, separated by commas) match, without sidecars, each once.

    ``output`` is not one of them, unless it is the only one. Raises ConfigError when there is none.
    """
    names = [name for pattern in patterns.split(",") if pattern.strip() for name in _matches(pattern.strip())]
    paths = [Path(name) for name in dict.fromkeys(names) if not Path(name).stem.endswith(_SIDECARS)]
    if not paths:
        raise ConfigError(f"no file matches input_glob={patterns!r} (looked in {Path.cwd()})")
    return [path for path in paths if path.resolve() != output.resolve()] or paths


def _matches(pattern: str) -> list[str]:
    return sorted(glob(pattern))  # noqa: PTH207 - pathlib's takes no absolute pattern


@dataclass(frozen=True, slots=True)
class Placed:
    """A result without its conversation, and where the whole of it lies."""

    path: Path
    line: int
    offset: int
    row: Row

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.path}:{self.line}"


@dataclass(slots=True)
class Gathered:
    """What the files hold. Rows are without their conversations."""

    results: list[Placed] = field(default_factory=list)
    """By task and rollout."""
    failed: dict[Identity, Row] = field(default_factory=dict)
    """The last failed attempt of each rollout without a result."""
    unrun: dict[Identity, Row] = field(default_factory=dict)
    """The plan's row of each rollout of which nothing else is known."""
    plans: dict[Identity, Row] = field(default_factory=dict)
    """The plan's rows of ``failed`` and ``unrun``."""
    unplanned: list[Path] = field(default_factory=list)
    """Files without a plan beside them, of whose missing rollouts nothing can be known."""
    owner: Callable[[Mapping[str, Any]], str | None] = lambda row: None
    """Who ran a row."""

    def identity(self, row: Mapping[str, Any]) -> Identity:
        """The rollout that a row belongs to."""
        return self.owner(row), *key_of(row)


def gather(shards: Sequence[Path]) -> Gathered:
    """Read the files and what stands beside them.

    Runs number their tasks from 0 each, so a rollout is looked for among those of the same server, and each file is
    held against its own sidecars first. Raises StoreError for a broken line (file and number) and for a rollout with
    two results (both places).
    """
    found = Gathered()
    for shard in shards:
        found.results += [Placed(shard, line.number, line.offset, stripped(line.row)) for line in read_whole(shard)]
    found.results.sort(key=lambda placed: key_of(placed.row))
    found.owner = _owner(placed.row for placed in found.results)
    done = _refuse_repeats(found)
    for shard in shards:
        _take_failures(found, shard, done)
    for shard in shards:
        _take_plan(found, shard, done)
    return found


def _owner(rows: Iterable[Row]) -> Callable[[Mapping[str, Any]], str | None]:
    """The stamp of a row; of one without, the server that ran its agent's other rows if that is one, else the agent."""
    servers: dict[str, set[str]] = {}
    for row in rows:
        if (agent := _agent(row)) and isinstance(row.get(_SERVER), str):
            servers.setdefault(agent, set()).add(row[_SERVER])
    alone = {agent: next(iter(names)) for agent, names in servers.items() if len(names) == 1}

    def owner(row: Mapping[str, Any]) -> str | None:
        stamp = row.get(_SERVER)
        agent = _agent(row)
        return stamp if isinstance(stamp, str) else alone.get(agent, agent) if agent else None

    return owner


def _agent(row: Mapping[str, Any]) -> str | None:
    name = (row.get("agent_ref") or {}).get("name")
    return name if isinstance(name, str) else None


def _refuse_repeats(found: Gathered) -> set[Identity]:
    places: dict[Identity, Placed] = {}
    for placed in found.results:
        identity = found.identity(placed.row)
        if (before := places.get(identity)) is not None:
            server, task, rollout = identity
            raise StoreError(
                f"rollout {rollout} of task {task} at {server or 'nobody named'} has two results, {before.place} and "
                f"{placed.place}: give files of one run, or of different servers"
            )
        places[identity] = placed
    return set(places)


def _take_failures(found: Gathered, shard: Path, done: set[Identity]) -> None:
    for row in _beside(Artifacts.of(shard).failures):
        if (identity := found.identity(row)) not in done:
            found.failed[identity] = stripped(row)


def _take_plan(found: Gathered, shard: Path, done: set[Identity]) -> None:
    plan = Artifacts.of(shard).materialized
    if not plan.exists():
        found.unplanned.append(shard)
    for row in _beside(plan):
        identity = found.identity(row)
        if identity in done:
            continue
        found.plans[identity] = stripped(row)
        if identity not in found.failed:
            found.unrun.setdefault(identity, found.plans[identity])


def _beside(path: Path) -> Iterator[Row]:
    if path.exists():
        yield from (line.row for line in read_whole(path))
