"""The commands on runs that have ended: ``gymkit eval aggregate``, ``reverify`` and ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gymkit.cli.exits import exits
from gymkit.cli.options import CONFIG, SEARCH, SETTINGS


def add_to(evaluation: typer.Typer) -> None:
    """Add the commands to ``gymkit eval``."""
    evaluation.command("aggregate")(eval_aggregate)
    evaluation.command("reverify")(eval_reverify)
    evaluation.command("compare")(eval_compare)
    evaluation.command("health-check")(eval_health_check)


@exits()
def eval_aggregate(
    settings: Annotated[list[str] | None, SETTINGS] = None,
    input_glob: Annotated[
        str | None, typer.Option("--input-glob", "-i", metavar="GLOBS", help="The files, by commas (input_glob).")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The merged run (output_jsonl_fpath).")
    ] = None,
    config: Annotated[list[str] | None, CONFIG] = None,
    search_dir: Annotated[list[Path] | None, SEARCH] = None,
) -> None:
    """Put several runs together and compute their metrics.

    Needs no servers. +count_failure_classes_as_zero=[…] and +count_missing_rollouts_as_zero=true put what has no
    result into the metrics.
    """
    from gymkit.cli.aggregate import aggregate
    from gymkit.cli.tokens import loaded

    flags = {"input_glob": input_glob, "output_jsonl_fpath": output, "config_paths": config}
    aggregate(loaded(settings, flags, search_dir))


@exits()
def eval_reverify(
    settings: Annotated[list[str] | None, SETTINGS] = None,
    rollouts: Annotated[
        str | None, typer.Option("--rollouts", metavar="FILE", help="The run's main file (rollouts_jsonl_fpath).")
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            "--inputs", metavar="FILE", help="What was planned, if not beside it (materialized_inputs_jsonl_fpath)."
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where the new run goes (output_jsonl_fpath).")
    ] = None,
    env: Annotated[
        str | None, typer.Option("--env", help="An environment of ours, or a resources server's URL.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(help="Verifier calls in flight (num_samples_in_parallel).")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many results (limit).")] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Even where the verifier needs a state that is gone, or is another's; into unsafe_…."
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew where the output is there.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the output (resume_from_cache).")] = False,
    judge_failed_only: Annotated[
        bool, typer.Option("--judge-failed-only", help="Keep the results; score only what wants a judge.")
    ] = False,
    no_serve: Annotated[
        bool, typer.Option("--no-serve", help="Use the servers that `gymkit env start` has running.")
    ] = False,
    config: Annotated[list[str] | None, CONFIG] = None,
    search_dir: Annotated[list[Path] | None, SEARCH] = None,
) -> None:
    """Score a run again with the verifier as it is now.

    The new scores are compared with the old ones. The verifier is that of --env, of a configuration (--config), or of
    running servers (--no-serve).
    """
    from gymkit.cli.reverify import reverify
    from gymkit.cli.tokens import loaded

    flags = {
        "rollouts_jsonl_fpath": rollouts,
        "materialized_inputs_jsonl_fpath": inputs,
        "output_jsonl_fpath": output,
        "num_samples_in_parallel": concurrency,
        "limit": limit,
        "force": force or None,
        "overwrite": overwrite or None,
        "resume_from_cache": resume or None,
        "judge_failed_only": judge_failed_only or None,
        "config_paths": config,
    }
    reverify(loaded(settings, flags, search_dir), env=env, no_serve=no_serve)


@exits()
def eval_compare(
    settings: Annotated[list[str] | None, SETTINGS] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="FILE", help="Main file to compare with (baseline_rollouts_jsonl_fpath)."),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option("--candidates", metavar="FILE", help="The one compared (candidate_rollouts_jsonl_fpaths)."),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent (agent_name).")] = None,
    baseline_agent: Annotated[
        str | None, typer.Option("--baseline-agent", help="The baseline's agent (baseline_agent_name).")
    ] = None,
    candidate_agents: Annotated[
        str | None, typer.Option("--candidate-agents", help="The candidate's agent (candidate_agent_names).")
    ] = None,
    output_dir: Annotated[
        str | None, typer.Option("--output-dir", "-o", metavar="DIR", help="By default beside the candidate.")
    ] = None,
    report_format: Annotated[str | None, typer.Option("--report-format", help="md, json or both.")] = None,
) -> None:
    """Compare a run with a baseline by their metrics files.

    Writes compare_report.md and .json.
    """
    from gymkit.cli.compare import compare
    from gymkit.cli.tokens import loaded

    flags = {
        "baseline_rollouts_jsonl_fpath": baseline,
        "candidate_rollouts_jsonl_fpaths": candidates.split(",") if candidates else None,
        "agent_name": agent,
        "baseline_agent_name": baseline_agent,
        "candidate_agent_names": candidate_agents.split(",") if candidate_agents else None,
        "output_dirpath": output_dir,
        "report_format": report_format,
    }
    compare(loaded(settings, flags, None))


@exits()
def eval_health_check(
    run: Annotated[Path, typer.Argument(help="The run's folder, or its main file.")],
    rollout_file: Annotated[
        str, typer.Option("--rollout-file", metavar="NAME", help="The main file in the folder.")
    ] = "rollouts.jsonl",
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="CHECK", help="A check to leave out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Say whether the evidence on a run's rows is sound.

    The verdicts and their summary are written beside it.
    """
    from gymkit.cli.health import health_check

    health_check(run, rollout_file, ignore or [], as_json)
