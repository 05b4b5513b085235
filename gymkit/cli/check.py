"""``gymkit check``: whether somebody's agent service, or a server, keeps the contract."""

from __future__ import annotations

from pathlib import Path

import typer

from gymkit.sdk import bridge
from gymkit.sdk.agents import RemoteAgent
from gymkit.sdk.check.servers import acheck_server
from gymkit.sdk.env import Env


def check(url: str, environment: str, tasks: Path | None, timeout: float, budget: float) -> bool:
    """Print the report on the service at ``url``; returns whether no rule failed. Raises ConfigError, InputError."""
    report = RemoteAgent(url).check(Env(environment, tasks=tasks), timeout=timeout, budget=budget)
    typer.echo(str(report))
    return report.ok


def check_server(kind: str, url: str, environment: str, tasks: Path | None, timeout: float, budget: float) -> bool:
    """The same for a server of ours, yours or NeMo Gym's, with the first task row of the environment."""
    env = Env(environment, tasks=tasks)
    call = acheck_server(kind, url, env.rows[0], environment=env.name, timeout=timeout, budget=budget)
    report = bridge.run(call)
    typer.echo(str(report))
    return report.ok
