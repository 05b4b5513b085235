"""``gymkit check``: whether somebody's agent service keeps the contract."""

from __future__ import annotations

from pathlib import Path

import typer

from gymkit.sdk.agents import RemoteAgent
from gymkit.sdk.env import Env


def check(url: str, environment: str, tasks: Path | None, timeout: float, budget: float) -> bool:
    """Print the report on the service at ``url``; returns whether no rule failed. Raises ConfigError, InputError."""
    report = RemoteAgent(url).check(Env(environment, tasks=tasks), timeout=timeout, budget=budget)
    typer.echo(str(report))
    return report.ok
