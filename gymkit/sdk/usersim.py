"""``UserSimEpisode``: an assistant talks to simulated users, from a notebook."""

from __future__ import annotations

import contextvars
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from uuid import uuid4

from gymkit.collect.evidence import Evidence
from gymkit.collect.outcome import Outcome
from gymkit.collect.plan import Expansion
from gymkit.collect.progress import Key
from gymkit.collect.routing import Target
from gymkit.collect.tokens import Tokens
from gymkit.errors import ConfigError, InputError, ServerError
from gymkit.sdk import bridge
from gymkit.sdk.collection import Collection
from gymkit.sdk.usersim_house import Answering, Assistant, Bounds, House, built, name_of, settings_of
from gymkit.servers.capture import Capture, MemoryCapture
from gymkit.usersim.invocation import Invocation, Listener
from gymkit.usersim.scenario import DONE, Scenario
from gymkit.usersim.scenario import TASKSET as SCENARIOS
from gymkit.usersim.task import TASKSET, UserSimTask, materialized
from gymkit.wire import codec
from gymkit.wire.episodes import EpisodeResponse

if TYPE_CHECKING:
    from gymkit.sdk.agents import Agent
    from gymkit.sdk.env import Env
    from gymkit.sdk.rollouts import Rollouts
    from gymkit.views.dialogue import Dialogue

_NAME = "nemo_user_sim"


class UserSimEpisode:
    """Conversations in which ``user`` plays the user, ``assistant`` is under test, and ``support`` does the rest.

    Parameters
    ----------
    assistant:
        Whom to evaluate: a ``Model``, a ``RemoteAgent`` (or its URL), a Python function of a Responses request, or an
        agent server of gymkit. It returns its tool calls unexecuted; the simulation runs the tools.
    user:
        Who plays the user: a ``Model`` or a function. It has no default, so that no user silently is the assistant.
    support:
        Who judges, summarizes, plays tools, evaluates and scores: a ``Model`` or a function. ``"scenario"`` episodes
        can do without one: their reward then is the mean of their checks.
    embedding:
        What ``financial_services`` searches with: a ``Model`` of a service with ``/embeddings``. Without one, documents
        are found by their words, and the rows say so.
    runtime:
        ``"usersim"`` plays NeMo User Sim's probes (extra ``gymkit[usersim]``), ``"scenario"`` your own scenarios.
    assistant_name:
        The name of the assistant's model, where it is not that of ``assistant``: ``identity_disclosure`` has to know.
    audit:
        Who checks the simulated user: ``"rules"``, ``"judge"`` (rules and the support model), or ``"off"``.
    mask_user_faults:
        Whether an episode that its user spoiled is masked (``usersim:user_fault``).
    usersim_revision:
        The revision whose rows are taken, for rows that were prepared elsewhere; by default the installed package's.
    concurrency, episode_timeout, call_timeout:
        Episodes in flight, and the seconds that an episode and one call of a role may take.

    Raises ConfigError.
    """

    def __init__(
        self,
        *,
        assistant: Assistant,
        user: Answering,
        support: Answering | None = None,
        embedding: Any = None,
        runtime: Literal["usersim", "scenario"] = "usersim",
        assistant_name: str | None = None,
        audit: Literal["off", "rules", "judge"] = "rules",
        mask_user_faults: bool = True,
        usersim_revision: str | None = None,
        concurrency: int = 32,
        episode_timeout: float = 1800.0,
        call_timeout: float = 300.0,
    ) -> None:
        if runtime not in ("usersim", "scenario"):
            raise ConfigError(f"UserSimEpisode: runtime is 'usersim' or 'scenario', not {runtime!r}")
        if runtime == "usersim" and support is None:
            raise ConfigError("UserSimEpisode: the probes of NeMo User Sim need support=…, which judges and scores")
        if audit == "judge" and support is None:
            raise ConfigError("UserSimEpisode: audit='judge' needs support=…, which judges the user")
        self.assistant = assistant
        self.user = user
        self.support = support
        self.embedding = embedding
        self.runtime: Literal["usersim", "scenario"] = runtime
        self.assistant_name = assistant_name or name_of(assistant, "assistant")
        self.bounds = Bounds(episode_timeout, call_timeout, audit, mask_user_faults, usersim_revision)
        self.concurrency = concurrency

    def rollouts(self, tasks: Any = None, **options: Any) -> Rollouts:
        """Play every task and return the rollouts.

        Parameters
        ----------
        tasks:
            What ``gk.usersim.prepare`` made (a frame, any part of it, its rows, or the file), or scenarios. By default
            one row of each of the 14 probes.
        output, repeats, limit, resume, concurrency, require_complete, capture, progress:
            As in ``Env.rollouts``. The calls of all roles are captured; the turns of ``ng_trajectory`` and the sums of
            ``ng_perf`` are the assistant's alone.

        The result has the frames of any run and ``conversations``, ``invocations``, ``outcomes`` and ``audit``. With an
        assistant whose model tells token ids (``token_ids=True``), ``rollouts.to_training()`` has the assistant's
        replies as samples, and nobody else's words.
        ``rollouts.rerun(mask)`` plays chosen episodes again. Raises InputError for tasks that cannot be played (nothing
        is started), MissingExtra, and what ``Env.rollouts`` raises.
        """
        collection, rows = self._collection(tasks, **options)
        outcome = None
        with collection.watched():
            try:
                outcome = bridge.run(collection.collect())
            except KeyboardInterrupt:
                if not collection.begun:
                    raise
        return self._result(rows, collection, outcome)

    async def arollouts(self, tasks: Any = None, **options: Any) -> Rollouts:
        """The twin of ``rollouts`` for a running loop."""
        collection, rows = self._collection(tasks, **options)
        with collection.watched():
            outcome = await bridge.arun(collection.collect())
        return self._result(rows, collection, outcome)

    async def aplay(self, task: Any, *, quiet: bool = False) -> Dialogue:
        """The twin of ``play`` for a running loop."""
        rows, scenarios = self._rows([task] if isinstance(task, Mapping | Scenario) else task)
        if len(rows) != 1:
            raise InputError([f"play takes one task, and these are {len(rows)}"])
        self._check(rows)
        house = built(self, scenarios, None if quiet else _teller())
        return await bridge.arun(_played(house, rows[0]))

    play = bridge.twin(aplay)
    play.__doc__ = """Play one task and show each message as it is said; ``quiet`` shows none.

        ``task`` is one prepared row (a frame of one row, or a dict) or a scenario. Returns the conversation with its
        whole ``row`` (reward, mask, components, outcome). Raises InputError, and ServerError when the episode failed.
        """

    def settings(self) -> dict[str, Any]:
        """What results depend on; a resume with other settings is refused."""
        return {
            "environment": _NAME,
            "runtime": self.runtime,
            "assistant": settings_of(self.assistant, self.assistant_name),
            "user": settings_of(self.user, "user"),
            "support": settings_of(self.support, "support"),
            "embedding": settings_of(self.embedding, "embedding"),
            **self.bounds.settings(),
        }

    def _rows(self, tasks: Any) -> tuple[list[dict[str, Any]], list[Scenario]]:
        if tasks is None and self.runtime == "usersim":
            from gymkit.usersim.preparation import prepared_rows

            tasks = prepared_rows(assistant=self.assistant_name)
        given = _listed(tasks)
        scenarios = [each for each in given if isinstance(each, Scenario)]
        if scenarios and self.runtime != "scenario":
            raise ConfigError("scenarios are played by UserSimEpisode(runtime='scenario', …)")
        if len(scenarios) != len(given) and self.runtime == "scenario":
            raise ConfigError("UserSimEpisode(runtime='scenario') plays Scenario objects; rows are for 'usersim'")
        if self.support is None and (blind := [each for each in scenarios if not each.judges_itself]):
            raise ConfigError(f"{blind[0]!r} has no checks and there is no support=…, so nothing would judge it")
        taskset = SCENARIOS if scenarios else TASKSET
        rows = [each.row() if isinstance(each, Scenario) else dict(each) for each in given]
        return [materialized(row, taskset) for row in rows], scenarios

    def _check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Refuse rows that this assistant makes unplayable, before anything starts. Raises InputError."""
        if self.runtime != "usersim":
            return
        from gymkit.usersim.rows import identity_problems

        inner = [{"task_id": row["task_id"]["task_id"], **row["task_input"]} for row in rows]
        if problems := list(identity_problems(inner, self.assistant_name)):
            raise InputError(problems)

    def _collection(
        self,
        tasks: Any,
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
    ) -> tuple[Collection, Any]:
        if params:
            raise ConfigError("UserSimEpisode: parameters go by role: a row's role_request_params")
        rows, scenarios = self._rows(tasks)
        self._check(rows)
        records = MemoryCapture() if capture is True else capture or None
        house = built(self, scenarios, capture=records)
        bounds = self.bounds
        where = Path("results") / f"{_NAME}-{self.assistant_name}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
        environment = house.environment
        target = Target(
            self.assistant_name, environment.name, environment.implementation, _check_task, takes_flat=False
        )
        collection = Collection(
            tasks=rows,
            routing=target,
            routes={target.environment_server: house.route},
            output=Path(output) if output is not None else where,
            settings=self.settings(),
            expansion=Expansion(limit=limit, repeats=repeats),
            concurrency=concurrency or self.concurrency,
            rollout_timeout=bounds.episode_timeout + 1200.0 + 240.0,  # an episode, its verdict, and letting go
            resume=resume,
            again=again,
            require_complete=require_complete,
            evidence=None
            if records is None
            else Evidence(records, expected=capture is not True, tokens=Tokens(house.tokens)),
            shown=progress,
            closing=house.apps,
        )
        return collection, tasks if tasks is not None else rows

    def _result(self, tasks: Any, collection: Collection, outcome: Outcome | None) -> Rollouts:
        from gymkit.sdk.rollouts import Rollouts

        again = cast("Env", _Again(self, tasks))
        return Rollouts(collection.output, outcome=outcome, made_by=(again, cast("Agent", self.assistant)))

    def __repr__(self) -> str:
        return f"<UserSimEpisode {self.runtime}: {self.assistant_name} with {name_of(self.user, 'user')}>"


@dataclass(frozen=True, slots=True)
class _Again:
    """What ``Rollouts.rerun`` asks to run chosen rollouts again."""

    episode: UserSimEpisode
    tasks: Any

    async def arollouts(self, agent: object, **options: Any) -> Rollouts:
        """Play the same tasks with the same cast."""
        return await self.episode.arollouts(self.tasks, **options)


def _listed(tasks: Any) -> list[Mapping[str, Any] | Scenario]:
    """Tasks in any of their forms as a list. Raises ConfigError, InputError."""
    if isinstance(tasks, Scenario):
        return [tasks]
    if isinstance(tasks, str | Path):
        return list(_read(Path(tasks)))
    if hasattr(tasks, "to_dict") and hasattr(tasks, "columns"):
        if missing := [name for name in ("task_id", "resolved_row") if name not in tasks.columns]:
            raise ConfigError(f"the frame has no column {', '.join(missing)}: gk.usersim.prepare() makes such frames")
        kept = [name for name in ("task_id", "resolved_row", "role_request_params") if name in tasks.columns]
        return [{str(key): value for key, value in row.items()} for row in tasks[kept].to_dict("records")]
    if not isinstance(tasks, Iterable):
        raise ConfigError(f"tasks are a frame of gk.usersim.prepare(), a file, rows or scenarios, not {tasks!r:.80}")
    return list(tasks)


def _read(path: Path) -> Iterable[dict[str, Any]]:
    problems = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = codec.loads(line)
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        if isinstance(row, dict) and ("resolved_row" in row or "task_input" in row):
            yield row
        else:
            problems.append(f"{path}:{number}: resolved_row: is missing")
    if problems:
        raise InputError(problems)


def _check_task(task: Mapping[str, Any]) -> list[str]:
    from gymkit.collect.checks import fields_of

    return fields_of(UserSimTask)(task)


async def _played(house: House, row: Mapping[str, Any]) -> Dialogue:
    from gymkit.views.dialogue import Dialogue

    task = {"task_id": row["task_id"], "task_input": row["task_input"]}
    try:
        reply = await house.route.post("/run", {"episode_id": {"rollout_id": f"play-{uuid4().hex[:12]}"}, "task": task})
    finally:
        for app in house.apps:
            await app.aclose()
    told = EpisodeResponse.model_validate(reply.expect_ok().json())
    if told.failure is not None:
        raise ServerError(told.failure.failure_reason, server=_NAME, url=reply.url)
    assert told.result is not None
    return Dialogue(told.result)


def _teller() -> Listener:
    """Writes what the participants say into the cell, as they say it.

    It is called in the loop's thread, so it writes in the context of the cell, which Jupyter finds the cell by.
    """
    from gymkit.usersim.chat import message_of

    context, out = contextvars.copy_context(), sys.stdout

    def tell(invocation: Invocation) -> None:
        if invocation.role not in ("user", "assistant"):
            return
        message = message_of(invocation.response)
        calls = [
            f"→ {each['function']['name']}({each['function']['arguments']})" for each in message.get("tool_calls", ())
        ]
        said = str(message["content"]).replace(DONE, "").strip()
        for text in [*calls, *([said] if said else [])]:
            context.run(print, f"{invocation.role:>9}: {text}", file=out, flush=True)

    return tell
