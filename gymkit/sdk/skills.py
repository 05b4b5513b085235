"""The skills of a run, once it is clear that its agents can use them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gymkit.errors import ConfigError
from gymkit.servers.agent import AgentServer
from gymkit.servers.app import ServerApp
from gymkit.servers.skills import SkillsRef, read_skills


def skills_for(
    agents: Mapping[str, type[ServerApp] | None],
    path: str | os.PathLike[str],
    search_dirs: Iterable[str | Path] = (),
    *,
    protocols: Iterable[str] = (),
) -> SkillsRef:
    """The skills in the folder ``path``, for ``agents``: name to class, None for one that is not ours to know.

    ``protocols`` are the environment servers that give their agents no rows, but sessions.
    Raises ConfigError, also for an agent that would never see them.
    """
    for name in protocols:
        raise ConfigError(
            f"{name} drives agent sessions, which carry no skills: leave skills out, or run the agent behind a "
            "legacy_agent, which hands it whole rows"
        )
    for name, kind in agents.items():
        if kind is not None and issubclass(kind, AgentServer) and not kind.reads_skills:
            raise ConfigError(
                f"{name} cannot be given skills: a {kind.implementation} has no place for files, so it would run "
                "without them and its rows would say otherwise; leave skills out, or put their text into the "
                "instructions (params={'instructions': …})"
            )
    return read_skills(path, search_dirs)
