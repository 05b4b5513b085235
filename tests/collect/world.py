"""The other side of the collector: a server of a few lines, tasks, and what is on disk afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gymkit.collect.collector import collect
from gymkit.collect.outcome import Outcome
from gymkit.collect.plan import Expansion, Plan, plan_rollouts
from gymkit.collect.routing import Target
from gymkit.collect.store import Store
from gymkit.collect.tasks import Tasks
from gymkit.servers.http import AsgiApp
from gymkit.servers.route import Route
from gymkit.wire import codec

TARGET = Target("remote_agent", "remote_agent_environment_server", "legacy_agent")
METRICS = {"agent_metrics": {"mean/reward": 1.0}, "key_metrics": {}, "group_level_metrics": []}

Answer = tuple[int, Any]
Handler = Callable[[dict[str, Any]], Answer | Awaitable[Answer]]


def task(text: str = "add 1", **fields: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": [{"role": "user", "content": text}]}, **fields}


def tasks(count: int) -> list[dict[str, Any]]:
    return [task(f"add {number}", number=number) for number in range(count)]


def scored(row: Mapping[str, Any], reward: float = 1.0) -> Answer:
    return 200, {
        "responses_create_params": row["responses_create_params"],
        "response": {"output": []},
        "reward": reward,
    }


class Server:
    """Answers ``/run`` with what ``handle`` makes of the row, and remembers what it was asked."""

    def __init__(self, handle: Handler = scored, metrics: Answer = (200, METRICS)) -> None:
        self.handle = handle
        self.metrics = metrics
        self.rows: list[dict[str, Any]] = []
        self.verify_responses: list[dict[str, Any]] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = codec.loads((await receive())["body"])
        if scope["path"] == "/aggregate_metrics":
            self.verify_responses = body["verify_responses"]
            status, content = self.metrics
        else:
            self.rows.append(body)
            answer = self.handle(body)
            status, content = await answer if isinstance(answer, Awaitable) else answer
        data = content if isinstance(content, bytes) else codec.dumps(content)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": data})

    @property
    def keys(self) -> list[tuple[int, int]]:
        return [key_of(row) for row in self.rows]


def plan_of(rows: Iterable[Mapping[str, Any]], **expansion: Any) -> Plan:
    return plan_rollouts(Tasks.from_rows(rows), TARGET, expansion=Expansion(**expansion))


def run(output: Path, rows: Iterable[Mapping[str, Any]] | Plan, app: AsgiApp, **options: Any) -> Outcome:
    plan = rows if isinstance(rows, Plan) else plan_of(rows)

    async def main() -> Outcome:
        with Store(output) as store:
            return await collect(plan, store, routes(Route.to_app("environment", app)), **options)

    return asyncio.run(main())


def routes(route: Route) -> dict[str, Route]:
    return {TARGET.environment_server: route}


def key_of(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["_ng_task_index"], row["_ng_rollout_index"]


def read(path: Path) -> list[dict[str, Any]]:
    return [codec.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def failures(output: Path) -> list[dict[str, Any]]:
    return read(output.with_name(f"{output.stem}_failures.jsonl"))


def materialized(output: Path) -> list[dict[str, Any]]:
    return read(output.with_name(f"{output.stem}_materialized_inputs.jsonl"))
