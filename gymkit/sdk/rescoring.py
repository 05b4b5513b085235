"""A run scored again by its environment's verifier as it now is: ``Rollouts.reverify`` and ``gymkit eval reverify``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.metrics import entry, stripped
from gymkit.collect.profile import labels
from gymkit.collect.reverify import UNSAFE, Reverification, Verifiers
from gymkit.collect.store import Store
from gymkit.config import Config
from gymkit.errors import ConfigError
from gymkit.sdk.catalogue import AGENTS, ENVIRONMENTS, RESOURCES
from gymkit.sdk.env import Env
from gymkit.sdk.routed import resources_of
from gymkit.servers.aggregate import aggregate
from gymkit.servers.app import ServerApp
from gymkit.servers.route import Route, close_all


async def rescore(
    work: Reverification,
    output: Path,
    *,
    force: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    metrics: bool = True,
) -> Path:
    """Do ``work`` into ``output`` and return the main file: ``output``, or with ``unsafe_`` before its name.

    ``force`` goes on with verifiers of another environment than the run's, and with those that may need the state of
    the rollout, on a session seeded anew. Raises ConfigError for such a verifier without ``force``, and for an output
    that is there already without ``overwrite`` or ``resume``; StoreError as ``Reverification.collect`` does,
    ServerError for a server that cannot be reached.
    """
    try:
        work.read()
        unsafe = output.with_name(f"{UNSAFE}{output.name}")
        strangers = work.strangers()
        if strangers and not force:
            raise ConfigError(_of_another(work, strangers, unsafe))
        odd = await work.stateful()
        if odd and not force:
            raise ConfigError(
                f"{', '.join(odd)} verifies by the state of the rollout, which is gone: rewards would be wrong. "
                f"force (--force) does it all the same, into {unsafe.name}"
            )
        work.seeded = odd
        path = unsafe if odd or strangers else output
        _refuse(path, work.source.rollouts, overwrite=overwrite, resume=resume)
        with Store(path) as store:
            await work.collect(store, resume=resume)
            if metrics:
                _write_metrics(store)
        return path
    finally:
        await close_all(work.verifiers.routes.values())


def _of_another(work: Reverification, strangers: list[str], unsafe: Path) -> str:
    given, named = ", ".join(work.verifiers.routes), ", ".join(strangers)
    return (
        f"{work.source.rollouts} is a run of {named}, which {given} is not the verifier of: rewards would be wrong. "
        f"Give {named} (--env, --config); force (--force) does it all the same, into {unsafe.name}"
    )


def _refuse(path: Path, source: Path, *, overwrite: bool, resume: bool) -> None:
    if path.resolve() == source.resolve():
        raise ConfigError(f"{path} is what is scored again: give another output")
    there = [each for each in (path, Artifacts.of(path).failures) if each.exists()]
    if there and not (overwrite or resume):
        raise ConfigError(f"{there[0]} is there already: resume (--resume) goes on, overwrite (--overwrite) begins")


def _write_metrics(store: Store) -> None:
    """NeMo Gym's metrics by agent; which environment server ran a rollout long ago is not part of them."""
    rows = [stripped(line.row) for line in store.results()]
    label = labels(rows)
    agents: dict[str | None, list[dict[str, object]]] = {}
    for row in rows:
        agents.setdefault(label(row), []).append(row)
    groups = [
        entry({**aggregate(own), "perf_summary": None}, agent=name, environment_server=None)
        for name, own in agents.items()
    ]
    if groups:
        store.write_metrics(groups)


def verifier_of(env: Env) -> Verifiers:
    """The verifier of ``env``, for every row."""
    return Verifiers.only(env.route(), env.names)


def default_output(source: Path) -> Path:
    """Where a run scored again goes by default: beside the run."""
    return source.with_name(f"{source.stem}_reverified.jsonl")


def verifiers_of(config: Config, apps: Mapping[str, ServerApp] | None) -> Verifiers:
    """The resources servers of ``config``, in this process (``apps``) or running where it says (None).

    A row goes to the one that its ``task_source`` names, else to that of its environment server, else to its agent's,
    else to the only one there is. Raises ConfigError without any.
    """
    servers = {server.name: server for server in config.of_type(RESOURCES)}
    if not servers:
        raise ConfigError("there is no verifier: name an environment (--env), or a configuration that has one")
    routes = {
        name: Route.to_url(name, server.url) if apps is None else Route.to_app(name, apps[name])
        for name, server in servers.items()
    }
    fronts = {front.name: resources_of(config, front) for front in config.of_type(ENVIRONMENTS)}
    agents = {agent.name: agent.references.get("resources_server") for agent in config.of_type(AGENTS)}

    def of(row: Mapping[str, Any]) -> str:
        front, agent = fronts.get(row.get("_ng_environment_server", "")), agents.get(_agent(row))
        named = (row.get("task_source"), front and front.name, agent and agent.name)
        found = next((name for name in named if name in servers), None)
        if found is None and len(servers) > 1:
            raise ConfigError(
                f"{', '.join(servers)}: which scores task {row.get('_ng_task_index')}? Its row does not say"
            )
        return found or next(iter(servers))

    return Verifiers(routes, of, [*servers, *(server.implementation for server in servers.values())])


def _agent(row: Mapping[str, Any]) -> str:
    return str((row.get("agent_ref") or {}).get("name"))
