"""``gymkit eval run``: collect rollouts, with servers that run already or with those of a configuration."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import typer
from pydantic import BaseModel, ConfigDict, Field

from gymkit.cli.tokens import settings_of
from gymkit.collect.health import examine, known_checks
from gymkit.collect.outcome import Outcome
from gymkit.collect.plan import Expansion
from gymkit.config import Config
from gymkit.errors import ConfigError, IncompleteRun
from gymkit.sdk import bridge
from gymkit.sdk.collection import Collection
from gymkit.sdk.configured import agent_classes, build, run_of, session_fronts
from gymkit.sdk.routed import RoutingSettings, routing_of
from gymkit.sdk.skills import skills_for
from gymkit.servers.head import fetch_config
from gymkit.shipped import data_file

log = logging.getLogger("gymkit")


class SkillsSettings(BaseModel):
    """The skills of a run."""

    model_config = ConfigDict(extra="forbid")

    path: str
    """A folder of skills (``<skill>/SKILL.md``)."""


class RunSettings(RoutingSettings):
    """The settings of ``eval run``, by NeMo Gym's names."""

    input_jsonl_fpath: str
    """Task rows, one JSON object a line."""
    output_jsonl_fpath: str
    """The main file of results; its siblings take their names from it."""
    limit: int | None = Field(None, gt=0)
    """Only the first so many task rows."""
    num_repeats: int | None = Field(None, gt=0)
    """Rollouts of each task row, by default 1."""
    num_repeats_add_seed: bool = False
    """Whether the rollout index goes along as a sampling seed."""
    interleave_repeats: bool = False
    """Whether every task runs once before any runs again."""
    num_samples_in_parallel: int | None = Field(None, gt=0)
    """Rollouts in flight, by default what the agent allows."""
    resume_from_cache: bool = False
    """Go on with the run on disk."""
    responses_create_params: dict[str, Any] = Field(default_factory=dict)
    """Laid over each row's own parameters."""
    skills: SkillsSettings | None = None
    """What agents that can read files are given for this run."""
    disable_aggregation: bool = False
    """Leave out the metrics file and the health check."""
    disable_health_check: bool = False
    """Leave out the health check."""
    health_check_ignored_checks: list[str] = Field(default_factory=list)
    """Checks that the health check leaves out."""
    require_complete: bool = False
    """End with an error unless every rollout has a result."""
    route_failures_to_sidecar: Literal[True] = True
    """Always so: a failure never ends a run."""


def run(config: Config, *, no_serve: bool, search_dirs: Iterable[Path]) -> None:
    """Collect, and print how it ended. Raises ConfigError, InputError, StoreError, ServerError, IncompleteRun."""
    settings = settings_of(config, RunSettings)
    known_checks(settings.health_check_ignored_checks)
    tasks = data_file(settings.input_jsonl_fpath, search_dirs)
    if no_serve:
        _refuse_servers(config)
        config = bridge.run(fetch_config(config.head.url))
    elif not config.servers:
        raise ConfigError(
            "there is no agent to run: name a configuration (--config FILE), or add --no-serve to use the servers that "
            "`gymkit env start` has running"
        )
    routing = routing_of(config, settings)
    apps = None if no_serve else build(config)
    agents = agent_classes(config, routing, apps)
    collection = run_of(
        config,
        routing,
        apps=apps,
        tasks=tasks,
        output=Path(settings.output_jsonl_fpath),
        expansion=Expansion(
            limit=settings.limit,
            repeats=settings.num_repeats or 1,
            add_seed=settings.num_repeats_add_seed,
            interleave=settings.interleave_repeats,
            responses_create_params=settings.responses_create_params,
            skills=None
            if settings.skills is None
            else skills_for(agents, settings.skills.path, search_dirs, protocols=session_fronts(config, routing)),
        ),
        concurrency=settings.num_samples_in_parallel,
        resume=settings.resume_from_cache,
        aggregate=not settings.disable_aggregation,
        require_complete=settings.require_complete,
    )
    try:
        outcome = _collected(collection)
    except IncompleteRun:
        _examine(settings)
        raise
    _examine(settings)
    report(outcome)


def report(outcome: Outcome) -> None:
    """Print how a run ended: counts where not every rollout is scored, the mean beside its denominator, the file."""
    if outcome.scored < outcome.expected:
        typer.echo(str(outcome))
    mean = "none" if outcome.mean is None else f"{outcome.mean:.4g}" if outcome.mean % 1 else f"{outcome.mean:.1f}"
    typer.echo(f"mean/reward: {mean} ({outcome.scored} of {outcome.expected} rollouts)")
    typer.echo(str(outcome.output))


def _examine(settings: RunSettings) -> None:
    """Write the health of the run's evidence beside it, as NeMo Gym does. What goes wrong here costs no run."""
    if settings.disable_aggregation or settings.disable_health_check:
        return
    try:
        examined = examine(Path(settings.output_jsonl_fpath), settings.health_check_ignored_checks)
        verdicts, _ = examined.write()
    except Exception as error:  # noqa: BLE001 - the rows are on disk, and can be examined again
        log.warning("the run's health could not be examined: %r; gymkit eval health-check tries again", error)
        return
    unhealthy = sum(each.verdict == "unhealthy" for each in examined.verdicts)
    if unhealthy:
        typer.echo(f"{unhealthy} of {len(examined.verdicts)} rows are unhealthy, see {verdicts}")


def _collected(collection: Collection) -> Outcome:
    with collection.watched():
        try:
            return bridge.run(collection.collect())
        except KeyboardInterrupt:
            if collection.begun:
                done, total = collection.progress.done, collection.progress.total
                typer.echo(
                    f"stopped: {done} of {total} rollouts are in {collection.output}; --resume goes on", err=True
                )
            raise


def _refuse_servers(config: Config) -> None:
    for name in config.sources[-1].tree:
        if name in config.servers:
            raise ConfigError(f"{name} has no effect with --no-serve: its servers run already, as they were started")
