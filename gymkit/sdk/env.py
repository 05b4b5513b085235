"""An environment in a notebook: its tasks, a session to play by hand, and rollouts of an agent in it."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from gymkit.collect.evidence import Evidence
from gymkit.collect.outcome import Outcome
from gymkit.collect.plan import Expansion
from gymkit.collect.progress import Key
from gymkit.collect.routing import Target
from gymkit.collect.tasks import Tasks
from gymkit.collect.tokens import TokenRules, Tokens
from gymkit.errors import ConfigError, InputError
from gymkit.resources import canonical, load
from gymkit.sdk import bridge
from gymkit.sdk.agents import Agent, checked_agent
from gymkit.sdk.collection import Collection, TaskSource, patience
from gymkit.sdk.options import checked_options, spell_out
from gymkit.sdk.package import configuration, identity
from gymkit.sdk.protocol import Protocol, episodes, front_of, settings_of
from gymkit.sdk.session import Session
from gymkit.sdk.skills import skills_for
from gymkit.servers.base_url import base_url_problem, is_address
from gymkit.servers.capture import Capture, MemoryCapture
from gymkit.servers.resources import ResourcesServer
from gymkit.servers.route import Route
from gymkit.shipped import shipped
from gymkit.wire.tasks import strip_result_fields

if TYPE_CHECKING:
    import pandas as pd

    from gymkit.sdk.check import Report
    from gymkit.sdk.defined import DefinedEnv
    from gymkit.sdk.from_config import Described
    from gymkit.sdk.rollouts import Rollouts
    from gymkit.servers.hosting import Hosted


class Env:
    """An environment: one of ours by name, embedded in this process, or a resources server elsewhere by its URL.

    Parameters
    ----------
    environment:
        ``"counter"``, ``"weather"`` or ``"synonyms"`` (NeMo Gym's names for them work too), a resources server of your
        own, ``"http://host:port"`` of one that is running, ours or NeMo Gym's, or the folder of one that was saved
        (``"anagram/"``), or a configuration's file (``"counter_remote.yaml"``).
    tasks:
        The task rows: a JSON lines file or a list of dicts. By default those that we ship with the environment; a
        server elsewhere has none to offer, so they have to be given.

    Raises ConfigError for a name or URL that cannot be used.
    """

    def __init__(
        self, environment: str | os.PathLike[str] | ResourcesServer[Any], *, tasks: TaskSource | None = None
    ) -> None:
        self._server: ResourcesServer[Any] | None = None
        self.agents: dict[str, Agent] = {}
        """The agents that came with it by name, where it was read from a configuration."""
        if isinstance(environment, ResourcesServer):
            self._server, self.name = environment, environment.name
        elif isinstance(environment, os.PathLike) or _is_path(environment):
            self.name, self._server, own, self.agents = _described(environment)
            tasks = own if tasks is None else tasks
        elif "://" in environment:
            if problem := base_url_problem(environment):
                raise ConfigError(f"Env: the URL {problem}")
            self.name = environment.rstrip("/")
        elif is_address(environment):
            raise ConfigError(f"Env: {environment} is no environment's name; a server's URL begins with http://")
        else:
            self.name = canonical(environment)
            self._server = load(self.name)(f"{self.name}_resources_server")
            tasks = shipped(f"data/{self.name}.jsonl") if tasks is None else tasks
        self._source = tasks

    @classmethod
    def from_config(cls, path: str | os.PathLike[str], *overrides: str) -> Self:
        """The environment that a YAML file describes (the shape of NeMo Gym's), with its ``agents``, embedded.

        ``overrides`` are Hydra tokens (``"++remote_agent.responses_api_agents.remote_agent.max_steps=3"``). Tasks are
        those we ship with the environment. Raises ConfigError that names the file, the key and the nearest right name.
        """
        name, server, tasks, agents = _described(path, overrides)
        env = cls(server, tasks=tasks)
        env.name, env.agents = name, agents
        return env

    @staticmethod
    def define(name: str, *, tasks: TaskSource | pd.DataFrame, expose_tools_over_mcp: bool = False) -> DefinedEnv:
        """An environment of your own: its tools and its verifier are functions that you add with decorators.

        Parameters
        ----------
        name:
            What to call it: letters, digits, _ and -.
        tasks:
            A DataFrame, a list of dicts or a JSON lines file, one task a row. ``prompt`` is what the agent is asked
            (text, or a list of messages); or give ``responses_create_params`` as in NeMo Gym. All other fields stay on
            this side: functions read them (``task.word``), agents never see them.
        expose_tools_over_mcp:
            Whether the tools can be called over ``/mcp`` as well, by agents that speak MCP.

        ``@env.tool`` adds a tool, ``@env.verify`` sets the verifier, ``@env.seed`` what a rollout starts with. Raises
        ConfigError for a name that cannot be used and InputError for rows that are no tasks.
        """
        from gymkit.sdk.defined import DefinedEnv  # which is an Env

        return DefinedEnv(name, tasks=tasks, expose_tools_over_mcp=expose_tools_over_mcp)

    def route(self) -> Route:
        """A fresh route to the resources server."""
        if self._server is None:
            return Route.to_url(self.name, self.name)
        return Route.to_app(self._server.name, self._server)

    @property
    def names(self) -> list[str]:
        """What runs in it may call it: its name, its server's and its kind's; none for a server elsewhere."""
        server = self._server
        return [] if server is None else [self.name, server.name, getattr(server, "implementation", self.name)]

    @property
    def source(self) -> TaskSource:
        """Where the task rows come from. Raises ConfigError when none were given."""
        if self._source is None:
            raise ConfigError(f"{self!r} has no tasks of its own: Env({self.name!r}, tasks='tasks.jsonl')")
        return self._source

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The task rows as they are. Raises InputError."""
        source = self.source
        if not isinstance(source, str | Path):
            return [dict(row) for row in source]  # type: ignore[union-attr]
        with Tasks.from_path(source) as tasks:
            return [strip_result_fields(row) for row in tasks.rows()]

    @property
    def tasks(self) -> pd.DataFrame:
        """One row per task: ``task_index`` Int64, ``task_id`` and ``prompt`` string, ``tools`` Int64, its fields."""
        from gymkit.frames import tasks

        return tasks.frame(self.rows)

    @property
    def tools(self) -> pd.DataFrame:
        """One row per tool that the tasks offer: ``name``, ``description``, ``parameters`` (a signature), strings."""
        import pandas as pd

        found = {tool["name"]: tool for row in self.rows for tool in row["responses_create_params"].get("tools") or ()}
        records = [(name, tool.get("description") or "", _signature(tool)) for name, tool in found.items()]
        return pd.DataFrame(records, columns=["name", "description", "parameters"], dtype="string")

    async def asession(self, task: int = 0) -> Session:
        """Seed a session of task number ``task`` and return it, to play the task by hand.

        Raises InputError for a task that is not there, and BadStatus when the environment refuses the task.
        """
        if not isinstance(task, SupportsIndex) or not 0 <= operator.index(task) < len(self.rows):
            raise InputError([f"there is no task {task!r}: {self!r} has tasks 0 to {len(self.rows) - 1}"])
        return await bridge.arun(Session(self.route(), self.rows[operator.index(task)])._seed())

    async def arollouts(self, agent: Agent | None = None, **options: Any) -> Rollouts:
        """Collect rollouts of ``agent``: the twin of ``rollouts`` for a running loop, with the same parameters."""
        agent, collection = self._begun(agent, options)
        with collection.watched():
            outcome = await bridge.arun(collection.collect())
        return self._result(agent, collection, outcome)

    session = bridge.twin(asession)

    async def acheck(
        self,
        solution: str | Callable[[Session], Any] | None = None,
        *,
        timeout: float = 30.0,
        budget: float = 60.0,
    ) -> Report:
        """Try the environment rule by rule, before anybody runs an agent in it.

        Every task is seeded; a few are played alone, again, and at once; tools get bad arguments; the verifier sees a
        rollout that did nothing and, with ``solution``, one that is right.

        Parameters
        ----------
        solution:
            The field of the tasks that holds the right answer, or a function that plays a session
            (``session.call(…)``, ``session.task["word"]``) and returns the final answer, sync or async.
        timeout, budget:
            Seconds that one call and the whole check may take.

        Returns a report: ``print`` it, ``.ok`` says that no rule failed, ``.frame`` has one row per rule.
        """
        from gymkit.sdk.env_check import acheck

        return await acheck(self, solution, timeout=timeout, budget=budget)

    check = bridge.twin(acheck)

    def rollouts(self, agent: Agent | None = None, **options: Any) -> Rollouts:
        """Collect rollouts of ``agent`` in this environment and return them.

        Parameters
        ----------
        agent:
            Whom to drive, for example ``RemoteAgent("http://localhost:9000")``; by default the only one of ``agents``.
        output:
            The main file; siblings (failures, materialized inputs, metrics) stand beside it. By default a new file
            under ``results/``. A run that is not a resume takes the place of an earlier one, of which the folder
            ``previous/`` keeps a copy: one, the latest.
        repeats, limit:
            Rollouts of each task, and how many task rows to take.
        resume:
            Go on with the run in ``output``: what has a result stays, what failed is tried again (3 attempts in all).
        concurrency:
            Rollouts in flight; by default what the agent allows.
        params:
            Laid over each task's ``responses_create_params``.
        require_complete:
            Raise IncompleteRun at the end when a rollout has no result.
        capture:
            Whether the calls of a ``gk.Model`` are recorded on the rows, with what the agent saw of its own work; False
            makes small rows. A capture that servers elsewhere write to (``FileCapture(directory)``) is read from there.
        progress:
            False: show nothing while it runs.
        skills:
            A folder of skills (``<skill>/SKILL.md``) that the agent is given for this run; every row says which. Only
            for agents that can read files.
        protocol:
            Who plays the episodes: by default the agent itself, on its ``/run``. ``SingleAgentTurn``, or a class of
            yours that overrides its ``play``, drives the agent's sessions and decides when to verify.

        Ctrl-C keeps what is done and returns it; ``resume=True`` goes on from there. Raises InputError for task rows
        that cannot be run (nothing is started), StoreLocked, ResumeMismatch and ConfigError.
        """
        agent, collection = self._begun(agent, options)
        outcome = None
        with collection.watched():
            try:
                outcome = bridge.run(collection.collect())
            except KeyboardInterrupt:
                if not collection.begun:
                    raise
        return self._result(agent, collection, outcome)

    def _begun(self, agent: Agent | None, options: Mapping[str, Any]) -> tuple[Agent, Collection]:
        agent = self._only_agent() if agent is None else checked_agent(agent)
        return agent, self.collection(agent, **checked_options(options, like=Env.collection))

    def _only_agent(self) -> Agent:
        if len(self.agents) != 1:
            raise ConfigError(f"which agent? {self!r} came with {', '.join(self.agents) or 'none'}: give one")
        return next(iter(self.agents.values()))

    def _result(self, agent: Agent, collection: Collection, outcome: Outcome | None) -> Rollouts:
        from gymkit.sdk.rollouts import Rollouts

        return Rollouts(collection.output, outcome=outcome, made_by=(self, agent))

    def collection(
        self,
        agent: Agent,
        *,
        output: str | Path | None = None,
        repeats: int = 1,
        limit: int | None = None,
        resume: bool = False,
        concurrency: int | None = None,
        params: Mapping[str, Any] | None = None,
        again: frozenset[Key] | None = None,
        require_complete: bool = False,
        capture: bool | Capture = True,
        progress: bool = True,
        protocol: Protocol | None = None,
        skills: str | os.PathLike[str] | None = None,
    ) -> Collection:
        """The run that ``rollouts`` does, not begun; parameters as there."""
        resources = self.route()
        records = MemoryCapture() if capture is True else capture or None
        server = agent.server(resources, records)
        front = front_of(protocol, server, resources, agent.run_timeout)
        in_flight = agent.concurrency if concurrency is None else concurrency
        check_task = None if self._server is None else self._server.check_task
        return Collection(
            tasks=self.source if protocol is None else episodes(self.rows, self.name),
            routing=Target(agent.name, front.name, front.implementation, check_task, takes_flat=protocol is None),
            routes={front.name: Route.to_app(front.name, front)},
            output=Path(output) if output is not None else _default_output(self.name, agent.name),
            settings={
                "environment": self.name,
                **identity(self._server),
                "agent": agent.settings(),
                **settings_of(front),
            },
            expansion=Expansion(
                limit=limit,
                repeats=repeats,
                responses_create_params=dict(params or {}),
                skills=None if skills is None else skills_for({agent.name: type(server)}, skills),
            ),
            concurrency=in_flight,
            rollout_timeout=patience(agent.run_timeout, in_flight, agent.concurrency),
            resume=resume,
            again=again,
            require_complete=require_complete,
            evidence=None
            if records is None
            else Evidence(
                records, expected=capture is not True, tokens=Tokens(TokenRules.of(agent, opaque=server.opaque))
            ),
            shown=progress,
            closing=[server],
        )

    def serve(self, port: int = 0, *, host: str = "127.0.0.1") -> Hosted:
        """Put the environment's resources server on a socket, for agents or collectors in other processes.

        Port 0 takes a free one; ``.url`` of the result says where and ``.stop()`` ends it. Raises ConfigError for a
        port that is taken, or for an environment that runs elsewhere already.
        """
        if self._server is None:
            raise ConfigError(f"{self!r} runs elsewhere already, at {self.name}")
        from gymkit.servers.hosting import serve  # brings uvicorn, which an embedded environment does not need

        return serve(self._server, host, port)

    def __repr__(self) -> str:
        return f"<Env {self.name}>"


for _each in (Env.rollouts, Env.arollouts):
    spell_out(_each, like=Env.collection)


def _is_path(environment: object) -> bool:
    if not isinstance(environment, str):
        raise ConfigError(f"Env: a name, a URL, a path or a resources server is needed, not {environment!r:.60}")
    return "://" not in environment and ("/" in environment or environment.endswith((".yaml", ".yml")))


def _described(path: str | os.PathLike[str], overrides: tuple[str, ...] = ()) -> Described:
    from gymkit.sdk.from_config import read  # brings OmegaConf

    return read(configuration(Path(path)), overrides)


def _default_output(environment: str, agent: str) -> Path:
    place = environment.partition("://")[2].replace("/", "_").replace(":", "_") or environment
    return Path("results") / f"{place}-{agent}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"


def _signature(tool: Mapping[str, Any]) -> str:
    properties = (tool.get("parameters") or {}).get("properties") or {}
    return ", ".join(f"{name}: {schema.get('type', 'any')}" for name, schema in properties.items())
