"""Trying an environment over its routes: every task seeded, a few played alone, again and at once, and misused."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from secrets import choice
from typing import TYPE_CHECKING, Any, Final

from gymkit.errors import ConfigError, GymkitError, WireError
from gymkit.resources.defined import Defined
from gymkit.sdk.env_check import samples
from gymkit.sdk.env_check.evidence import CUT, IDLE, Evidence, Solved
from gymkit.sdk.env_check.trial import Post, Trial
from gymkit.sdk.package import ordered
from gymkit.sdk.session import Session
from gymkit.sdk.sources import sources_of
from gymkit.servers.resources import ResourcesServer
from gymkit.wire import codec
from gymkit.wire.responses import check_request

if TYPE_CHECKING:
    from gymkit.sdk.env import Env

Solution = str | Callable[[Session], Any]
"""The field of a task that holds the right answer, or a function that plays a session and returns it."""

TASKS: Final = 3
"""Tasks that are played, at most."""
SOLVED: Final = 25
"""Tasks that the solution plays, at most."""
SEEDS: Final = 500
"""Tasks that are seeded, at most: the first ones."""
UNKNOWN: Final = "no_such_tool_gymkit_check"

_LETTERS: Final = "bcdfghjkmpqvwxz"  # no digits and no words: nothing that a task could mean


class Probe:
    """One check of one environment. ``run`` fills ``seen``, step by step."""

    def __init__(self, env: Env, solution: Solution | None, timeout: float, budget: float) -> None:
        rows = env.rows
        self.calls = 0
        server = env._server
        served = None if server is None else {name: tool.schema() for name, tool in server.tools.items()}
        self.seen = Evidence(rows, _row_problems(server, rows), served, budget)
        self.seen.unsaveable = _unsaveable(server)
        self.seen.with_solution = solution is not None
        self.seen.secret = solution if isinstance(solution, str) else None
        self._solution = solution
        self._timeout = timeout
        self._route = env.route()

    async def run(self) -> None:
        """Try everything that the answers so far leave room for."""
        seen = self.seen
        if seen.row_problems:
            return
        await self._seed_all()
        tasks = [trial.task for trial in seen.seeds if trial.seeded][:TASKS]
        if not tasks:
            return
        for trials in (seen.alone, seen.again):
            for task in tasks:
                trials.append(self._trial(task))
                await self._play(trials[-1])
        await self._misuse(tasks[0])
        await self._do_nothing(tasks[0])
        seen.together = [self._trial(task, _marker() if marked else "") for task in tasks for marked in (0, 0, 1, 1)]
        await asyncio.gather(*map(self._play, seen.together))
        await self._solve([trial.task for trial in seen.seeds if trial.seeded][:SOLVED])

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._route.aclose()

    async def _seed_all(self) -> None:
        self.seen.seeds = [self._trial(task) for task in range(len(self.seen.rows))[:SEEDS]]
        for trial in self.seen.seeds:
            await self._seed(trial)

    async def _play(self, trial: Trial) -> None:
        """Call every tool of the task once, end with a message, and ask for the verdict twice."""
        await self._seed(trial)
        if not trial.seeded:
            return
        items = []
        for number, tool in enumerate(_tools(trial.row)):
            arguments = samples.arguments(tool, trial.marker or "abc")
            trial.calls.append(await self._call(trial, tool["name"], arguments))
            items += _record(number, trial.calls[-1])
            await asyncio.sleep(0)
        for _ in range(2):
            trial.verdicts.append(await self._verify(trial, [*items, _message("done")]))

    async def _misuse(self, task: int) -> None:
        """Arguments that do not fit, a tool that is not there, and then the tools as they should be called."""
        seen = self.seen
        trial = self._trial(task)
        await self._seed(trial)
        for tool in _tools(trial.row):
            for wrong, arguments in samples.misfits(tool):
                seen.misfits.append((f"{tool['name']} {wrong}", await self._call(trial, tool["name"], arguments)))
        seen.unknown = await self._call(trial, UNKNOWN, {})
        for tool in _tools(trial.row):
            trial.calls.append(await self._call(trial, tool["name"], samples.arguments(tool)))
        seen.after = trial

    async def _do_nothing(self, task: int) -> None:
        """The ways in which a rollout ends without an answer."""
        tools = _tools(self.seen.rows[task])
        ends: dict[str, list[dict[str, Any]]] = dict(zip(IDLE, ([_message("")], []), strict=True))
        if tools:
            post = Post(f"/{tools[0]['name']}", samples.arguments(tools[0]))
            ends[CUT] = _record(0, post)
        for name, items in ends.items():
            trial = self.seen.empty[name] = self._trial(task)
            await self._seed(trial)
            if trial.seeded:
                trial.verdicts.append(await self._verify(trial, items))

    async def _solve(self, tasks: list[int]) -> None:
        solution = self._solution
        if solution is None:
            return
        for task in tasks:
            self.seen.solved.append(await self._solved(task, solution))

    async def _solved(self, task: int, solution: Solution) -> Solved:
        row = self.seen.rows[task]
        answer = ""
        session = Session(self._route, row)
        try:
            answer = await _answer(solution, await session._seed())
            return Solved(task, answer, await session.averify(answer))
        except ConfigError:
            raise
        except GymkitError as error:
            return Solved(task, answer, None, str(error))
        except Exception as error:  # noqa: BLE001 - the caller's code: a finding, not the end of the check
            return Solved(task, answer, None, f"the solution raised {type(error).__name__}: {error}")
        finally:
            self.calls += 2 + len(session.items) // 2

    def _trial(self, task: int, marker: str = "") -> Trial:
        return Trial(task, self.seen.rows[task], marker)

    async def _seed(self, trial: Trial) -> None:
        trial.seed = await self._post(trial, "/seed_session", trial.row)

    async def _call(self, trial: Trial, name: str, arguments: Mapping[str, Any]) -> Post:
        return await self._post(trial, f"/{name}", arguments)

    async def _verify(self, trial: Trial, output: list[dict[str, Any]]) -> Post:
        return await self._post(trial, "/verify", {**trial.row, "response": _response(output)})

    async def _post(self, trial: Trial, path: str, body: Any) -> Post:
        self.calls += 1
        return await trial.post(self._route, path, body, self._timeout)


async def _answer(solution: Solution, session: Session) -> str:
    """What the solution answers; a plain function may call the session, which blocks, so it gets a thread."""
    if isinstance(solution, str):
        if solution not in session.task:
            raise ConfigError(f"check: solution={solution!r} is no field of the task {session.task!r:.200}")
        return str(session.task[solution])
    if inspect.iscoroutinefunction(solution):
        answer = await solution(session)
    else:
        answer = await asyncio.to_thread(solution, session)
    return "" if answer is None else str(answer)


def _unsaveable(server: object) -> str | None:
    if not isinstance(server, Defined):
        return None
    try:
        sources_of(each for _, each in ordered(server))
    except ConfigError as error:
        return str(error)
    return ""


def _row_problems(server: ResourcesServer[Any] | None, rows: list[dict[str, Any]]) -> list[str]:
    problems = []
    for task, row in enumerate(rows):
        try:
            check_request(row.get("responses_create_params"))
        except WireError as error:
            problems += [f"task {task}: responses_create_params.{problem}" for problem in error.problems]
        else:
            problems += [f"task {task}: {problem}" for problem in (server.check_task(row) if server else ())]
    return problems


def _tools(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    tools = row["responses_create_params"].get("tools") or ()
    return [tool for tool in tools if tool.get("type") == "function"]


def _record(number: int, post: Post) -> list[dict[str, Any]]:
    """A call and its output, as an agent's trajectory has them."""
    call_id = f"call_{number}"
    arguments = codec.dumps(post.body).decode()
    name = post.path.removeprefix("/")
    output = post.reply.text if post.reply else str(post.error or "")
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def _message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": content}


def _response(output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "resp_check",
        "created_at": 0.0,
        "model": "gymkit check",
        "object": "response",
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }


def _marker() -> str:
    return "".join(choice(_LETTERS) for _ in range(12))
