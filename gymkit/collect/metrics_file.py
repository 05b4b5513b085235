"""``X_aggregate_metrics.json`` read again: what each agent of a run came to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from gymkit.collect.artifacts import Artifacts
from gymkit.errors import ConfigError, StoreError
from gymkit.nearest import nearest
from gymkit.servers.aggregate import aggregate
from gymkit.wire import codec

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MetricsFile:
    """The metrics of one run."""

    rollouts: Path
    """The run's main file, which need not be there."""
    path: Path
    """The file of the metrics."""
    entries: Mapping[str, Entry] = field(repr=False)
    """By the name of the agent."""

    @classmethod
    def read(cls, rollouts: str | os.PathLike[str]) -> Self:
        """The metrics beside the main file ``rollouts``. Raises StoreError."""
        path = Artifacts.of(rollouts).metrics
        try:
            content = codec.loads(path.read_bytes())
        except FileNotFoundError:
            remedy = f"gymkit eval aggregate -i {rollouts} -o {rollouts}"
            raise StoreError(f"{path} is not there; {remedy} makes it") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise StoreError(f"{path} is not JSON: {error}") from error
        return cls(Path(rollouts), path, _by_agent(content, path))

    @property
    def label(self) -> str:
        """A short name: the folder of the run."""
        return self.rollouts.parent.name or self.rollouts.stem

    @property
    def names(self) -> list[str]:
        """Its agents."""
        return sorted(self.entries)

    def agent(self, name: str) -> Agent:
        """One agent's metrics. Raises ConfigError with the names there are."""
        if name not in self.entries:
            raise ConfigError(f"{self.path} has no agent {name}; {nearest(name, self.names)}")
        return Agent.of(name, self.entries[name])

    def only(self, role: str) -> str:
        """The name of the only agent. Raises ConfigError."""
        if len(self.entries) != 1:
            raise ConfigError(f"{self.path} has the agents {', '.join(self.names)}: say which is the {role}'s")
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent's part of a metrics file."""

    name: str
    """Its name."""
    metrics: Mapping[str, Any]
    """``agent_metrics``."""
    key_metrics: Mapping[str, Any]
    """``key_metrics``."""
    groups: Sequence[Mapping[str, Any]]
    """One for each task with a score."""
    repeats: Sequence[Mapping[str, Any]]
    """One for each rollout index, where there is more than one."""

    @classmethod
    def of(cls, name: str, entry: Entry) -> Self:
        """From an object of the file; repeats that an older file lacks are computed from its rollouts."""
        groups = entry.get("group_level_metrics") or []
        metrics = entry.get("agent_metrics") or {}
        repeats = entry.get("repeat_level_metrics")
        if repeats is None:
            found = aggregate([info for group in groups for info in group.get("rollout_infos", ())])
            repeats = found["repeat_level_metrics"]
            metrics = {**found["agent_metrics"], **metrics, "num_repeats": _most(groups) or len(repeats) or None}
        return cls(name, metrics, entry.get("key_metrics") or {}, groups, repeats)

    @property
    def num_repeats(self) -> int | None:
        """Rollouts of a task, at most; None when nobody says."""
        return _most(self.groups) or len(self.repeats) or None

    @property
    def all_metrics(self) -> dict[str, Any]:
        """Every metric by name; a server may have key metrics of their own names."""
        return {**self.key_metrics, **self.metrics}


def _by_agent(content: Any, path: Path) -> dict[str, Entry]:
    if not isinstance(content, list) or not content or not all(isinstance(each, dict) for each in content):
        raise StoreError(f"{path} is no metrics file: a list of objects, one for each agent, is needed")
    entries: dict[str, Entry] = {}
    for each in content:
        name = (each.get("agent_ref") or {}).get("name") or each.get("_ng_environment_server")
        if not isinstance(name, str):
            raise StoreError(f"{path} has an object without agent_ref.name")
        if name in entries:
            raise StoreError(f"{path} has two objects for the agent {name}")
        entries[name] = each
    return entries


def _most(groups: Sequence[Mapping[str, Any]]) -> int | None:
    counts = [group.get("expected_num_rollouts") for group in groups]
    return max((count for count in counts if isinstance(count, int)), default=None)
