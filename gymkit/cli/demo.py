"""``gymkit demo``: the whole way on one machine, from an agent's URL to its rewards."""

from __future__ import annotations

from pathlib import Path

import typer

from gymkit.errors import ConfigError
from gymkit.sdk.agents import RemoteAgent
from gymkit.sdk.env import Env
from gymkit.sdk.rollouts import Rollouts
from gymkit.testing import counter_service

NAME = "demo_agent"
"""The agent's name on the rows: a later demo may replace them, and nothing else may."""

_COLUMNS = ["task_index", "status", "reward", "steps", "tool_calls", "total_tokens", "seconds"]


def demo(output: Path) -> None:
    """Start the service, run it through the counter tasks, print the rewards. Raises ConfigError, StoreError."""
    if output.exists() and Rollouts.read(output).config.get("agent_ref", {}).get("name") != NAME:
        raise ConfigError(f"{output} holds another run, which the demo would replace: give --output another file")
    with counter_service.running() as url:
        typer.echo(f"an agent service answers at {url}, in a process of its own")
        rollouts = Env("counter").rollouts(
            RemoteAgent(url, name=NAME, concurrency=4, max_steps=8), output=output, require_complete=True
        )
    typer.echo(f"\n{rollouts.rewards[_COLUMNS].round(3).to_string(index=False)}\n")
    if rollouts.outcome is not None:
        from gymkit.cli.run import report

        report(rollouts.outcome)
