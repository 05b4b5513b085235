"""``gymkit eval reverify``: the rollouts of a run scored again."""

from __future__ import annotations

from pathlib import Path

import typer
from pydantic import BaseModel, Field

from gymkit.cli.tokens import settings_of
from gymkit.collect.artifacts import Artifacts
from gymkit.collect.reverify import Reverification, Verifiers
from gymkit.config import Config
from gymkit.sdk import bridge
from gymkit.sdk.configured import build
from gymkit.sdk.env import Env
from gymkit.sdk.rescoring import rescore, verifier_of, verifiers_of
from gymkit.sdk.rollouts import Rollouts
from gymkit.servers.head import fetch_config


class ReverifySettings(BaseModel):
    """The settings of ``eval reverify``, by NeMo Gym's names."""

    rollouts_jsonl_fpath: str
    """The main file of the run."""
    output_jsonl_fpath: str
    """The main file of the new run."""
    materialized_inputs_jsonl_fpath: str | None = None
    """The planned rollouts, by default the file beside the run."""
    num_samples_in_parallel: int = Field(32, gt=0)
    """Verifier calls in flight."""
    limit: int | None = Field(None, gt=0)
    """Only the first so many results."""
    force: bool = False
    """Even where the verifier needs the state of the rollout, or is of another environment."""
    overwrite: bool = False
    """Start anew where the output is there."""
    resume_from_cache: bool = False
    """Go on with the output."""
    judge_failed_only: bool = False
    """Keep the results, and score only the rollouts whose judge failed."""
    disable_aggregation: bool = False
    """Leave out the metrics file."""


def reverify(config: Config, *, env: str | None, no_serve: bool) -> None:
    """Score again, and print both runs compared. Raises ConfigError, StoreError, ServerError."""
    settings = settings_of(config, ReverifySettings)
    source = Artifacts.of(settings.rollouts_jsonl_fpath)
    work = Reverification(
        source=source,
        plan=Path(settings.materialized_inputs_jsonl_fpath or source.materialized),
        verifiers=_verifiers(config, env, no_serve),
        limit=settings.limit,
        judge_failed_only=settings.judge_failed_only,
        concurrency=settings.num_samples_in_parallel,
    )
    path = bridge.run(
        rescore(
            work,
            Path(settings.output_jsonl_fpath),
            force=settings.force,
            overwrite=settings.overwrite,
            resume=settings.resume_from_cache,
            metrics=not settings.disable_aggregation,
        )
    )
    before, after = Rollouts.read(source.rollouts), Rollouts.read(path)
    typer.echo(f"before: {before.summary()}\nafter:  {after.summary()}\nafter − before, by task:")
    typer.echo(str(after.compare(before)))
    typer.echo(str(path))


def _verifiers(config: Config, env: str | None, no_serve: bool) -> Verifiers:
    if env is not None:
        return verifier_of(Env(env))
    if no_serve:
        return verifiers_of(bridge.run(fetch_config(config.head.url)), None)
    return verifiers_of(config, build(config))
