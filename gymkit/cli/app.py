"""The commands. What each does lies in a module of its own, which is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gymkit import __version__
from gymkit.cli import finished
from gymkit.cli.exits import exits
from gymkit.cli.options import CONFIG, SEARCH, SETTINGS

app = typer.Typer(
    help="Evaluate agents in environments: rewards, masks and trajectories as DataFrames.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
environment = typer.Typer(help="Environments and the servers around them.", rich_markup_mode=None)
evaluation = typer.Typer(help="Collect rollouts and read what they amount to.", rich_markup_mode=None)
app.add_typer(environment, name="env")
app.add_typer(evaluation, name="eval")
simulation = typer.Typer(help="Simulated users.", rich_markup_mode=None)
app.add_typer(simulation, name="usersim")
finished.add_to(evaluation)


def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(1)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        typer.echo(f"gymkit {__version__}")
        raise typer.Exit
    _help(context)


environment.callback(invoke_without_command=True)(_help)
evaluation.callback(invoke_without_command=True)(_help)
simulation.callback(invoke_without_command=True)(_help)


@environment.command("start")
@exits()
def env_start(
    settings: Annotated[list[str] | None, SETTINGS] = None,
    config: Annotated[list[str] | None, CONFIG] = None,
    search_dir: Annotated[list[Path] | None, SEARCH] = None,
) -> None:
    """Start the servers of a configuration, until Ctrl-C.

    A discovery endpoint (head_server) tells other commands where they are. For example:
    gymkit env start "+config_paths=[counter_remote.yaml]" +head_server.port=11000
    """
    from gymkit.cli.start import start
    from gymkit.cli.tokens import loaded

    start(loaded(settings, {"config_paths": config}, search_dir))


@evaluation.command("run")
@exits()
def eval_run(
    settings: Annotated[list[str] | None, SETTINGS] = None,
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="The agent's name (agent_name).")] = None,
    input: Annotated[
        str | None, typer.Option("--input", "-i", metavar="FILE", help="Task rows, JSON lines (input_jsonl_fpath).")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where results go (output_jsonl_fpath).")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many task rows (limit).")] = None,
    num_repeats: Annotated[int | None, typer.Option(help="Rollouts of each task row (num_repeats).")] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Rollouts in flight at most (num_samples_in_parallel).")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --output (resume_from_cache).")
    ] = False,
    require_complete: Annotated[
        bool, typer.Option("--require-complete", help="End with status 1 unless every rollout has a result.")
    ] = False,
    no_health_check: Annotated[
        bool, typer.Option("--no-health-check", help="Leave out the health check at the end (disable_health_check).")
    ] = False,
    no_serve: Annotated[
        bool, typer.Option("--no-serve", help="Use the servers that `gymkit env start` has running.")
    ] = False,
    config: Annotated[list[str] | None, CONFIG] = None,
    search_dir: Annotated[list[Path] | None, SEARCH] = None,
) -> None:
    """Collect rollouts of an agent over task rows.

    With --no-serve the servers run already; without it, those of the configuration run inside this command.
    """
    from gymkit.cli.run import run
    from gymkit.cli.tokens import loaded

    flags = {
        "agent_name": agent,
        "input_jsonl_fpath": input,
        "output_jsonl_fpath": output,
        "limit": limit,
        "num_repeats": num_repeats,
        "num_samples_in_parallel": concurrency,
        "resume_from_cache": resume or None,
        "require_complete": require_complete or None,
        "disable_health_check": no_health_check or None,
        "config_paths": config,
    }
    run(loaded(settings, flags, search_dir), no_serve=no_serve, search_dirs=search_dir or ())


@evaluation.command("profile")
@exits()
def eval_profile(
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
    allow_partial: Annotated[
        bool,
        typer.Option("--allow-partial", help="Leave out planned rollouts without a result (allow_partial_rollouts)."),
    ] = False,
) -> None:
    """Write a finished run's metrics by task and by repeat.

    They go beside it. Needs no servers.
    """
    from gymkit.cli.profile import profile
    from gymkit.cli.tokens import loaded

    flags = {
        "rollouts_jsonl_fpath": rollouts,
        "materialized_inputs_jsonl_fpath": inputs,
        "allow_partial_rollouts": allow_partial or None,
    }
    profile(loaded(settings, flags, None))


@app.command()
@exits()
def check(
    url: Annotated[str, typer.Argument(help="The service's base URL, such as http://localhost:9000.")],
    kind: Annotated[
        Literal["service", "resources", "agent", "environment"],
        typer.Option("--kind", help="What runs there: an agent service, or a server of one of three kinds."),
    ] = "service",
    env: Annotated[str, typer.Option("--env", help="An environment of ours, or a resources server's URL.")] = "counter",
    tasks: Annotated[Path | None, typer.Option(metavar="FILE", help="Other task rows than the environment's.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that one call of the service may take.")] = 30.0,
    budget: Annotated[float, typer.Option(help="Seconds that the whole check may take.")] = 60.0,
) -> None:
    """Try an agent service against the contract, rule by rule.

    Status 1 if a rule fails. About 60 calls: rollouts one by one and at once, tool errors, odd and large requests.
    With --kind, a server is held to its own contract instead: sessions, repeated and late requests, shapes; the first
    task row is used.
    """
    from gymkit.cli.check import check, check_server

    kept = (
        check(url, env, tasks, timeout, budget)
        if kind == "service"
        else check_server(kind, url, env, tasks, timeout, budget)
    )
    if not kept:
        raise typer.Exit(1)


@app.command()
@exits()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where results go.")] = Path(
        "results/rollouts.jsonl"
    ),
) -> None:
    """Run a small agent through five tasks: no key, no network.

    It is a service in a process of its own; what is printed are its rewards in the environment counter.
    """
    from gymkit.cli.demo import demo

    demo(output)


@app.command()
@exits()
def view(
    rollouts: Annotated[Path, typer.Argument(metavar="FILE", help="The run's main file, results/rollouts.jsonl.")],
    port: Annotated[int, typer.Option(help="Where to serve; 0 takes a free port.")] = 0,
) -> None:
    """Serve a run as pages to read, until Ctrl-C.

    To this machine alone. A reload reads what has changed.
    """
    from gymkit.cli.view import view

    view(rollouts, port)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@exits()
def lab(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(metavar="DIR", help="Where the copies go.")] = Path("gymkit-lab"),
) -> None:
    """Copy the lessons and notebooks, and open JupyterLab.

    A notebook that you changed is never overwritten. Further options go to JupyterLab (--no-browser, --port).
    """
    from gymkit.cli.lab import lab

    raise typer.Exit(lab(folder, context.args))


@simulation.command("prepare")
@exits()
def usersim_prepare(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the rows go.")],
    probe: Annotated[
        list[str] | None, typer.Option(help="A probe; may be repeated. By default all of the locale.")
    ] = None,
    locale: Annotated[str, typer.Option(help="Language and country.")] = "en_US",
    rows: Annotated[int | None, typer.Option(help="How many rows; the probes are taken in turn.")] = None,
    personas: Annotated[str, typer.Option(help="synthetic, or a Nemotron-Personas parquet file.")] = "synthetic",
    personas_version: Annotated[str | None, typer.Option(help="Version of a file that is not known here.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed makes the same rows.")] = 1042,
    max_turns: Annotated[int, typer.Option(help="Turns of the assistant, at most.")] = 5,
    assistant: Annotated[str | None, typer.Option(help="Name of the assistant's model (identity_disclosure).")] = None,
) -> None:
    """Prepare tasks of NeMo User Sim.

    Rows with personas and probes, resolved. No model is called.
    """
    from gymkit.cli.usersim import prepare

    prepare(output, probe, locale, rows, personas, personas_version, seed, max_turns, assistant)
