"""Which environment server a row goes to, and what is said of a row that none takes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.collector import collect
from gymkit.collect.plan import plan_rollouts
from gymkit.collect.routing import ByTaskset, Target
from gymkit.collect.store import Store
from gymkit.collect.tasks import Tasks
from gymkit.servers.route import Route
from tests.collect.world import Answer, Server, read, task

FLAT = Target("agent", "flat_server", "legacy_agent")
FIRST = Target(None, "first_server", "single_agent_turn", takes_flat=False)
SECOND = Target(None, "second_server", "single_agent_turn", takes_flat=False)
ROUTING = ByTaskset({"a": FIRST, "b": SECOND, "c": FIRST}, FLAT)


def episode(taskset: Any, **fields: Any) -> dict[str, Any]:
    return {"task_id": {"taskset": taskset, "task_id": "1"}, "task_input": {**task(), **fields}}


def test_rows_go_by_their_task_set_and_flat_ones_to_the_flat_server() -> None:
    assert [ROUTING.of(episode(taskset)) for taskset in "abc"] == [FIRST, SECOND, FIRST]
    assert ROUTING.of(task()) is FLAT
    assert ROUTING.of(episode("d")) is None
    assert ByTaskset({}).of(task()) is None
    assert ROUTING.targets == (FLAT, FIRST, SECOND)


@pytest.mark.parametrize(
    ("routing", "row", "told"),
    [
        (ROUTING, episode("aa"), ["no environment server is set for 'aa' in environment_server_routes"]),
        (ROUTING, episode(None), ["no environment server is set for 'None'"]),
        (ByTaskset({"a": FIRST}), task(), ["this run takes no flat rows", "agent_name"]),
        (FIRST, task(), ["first_server (single_agent_turn) takes only rows that name their task_id"]),
        (ROUTING, episode("a"), []),
        (ROUTING, task(), []),
        (FLAT, episode("z"), []),
    ],
)
def test_a_row_that_no_server_takes_is_told_why(routing: Any, row: dict[str, Any], told: list[str]) -> None:
    problems = list(routing.problems(row))
    assert len(problems) == bool(told)
    for word in told:
        assert word in problems[0]


def test_the_fingerprint_knows_the_routes_and_not_the_checks() -> None:
    def run(routing: Any) -> str:
        return plan_rollouts(Tasks.from_rows([episode("a")]), routing).run

    assert run(ByTaskset({"a": FIRST})) == run(ByTaskset({"a": replace(FIRST, check_task=lambda row: [])}))
    assert len({run(ByTaskset({"a": FIRST})), run(ByTaskset({"a": SECOND})), run(ROUTING)}) == 3


def test_without_routes_a_run_is_that_of_its_one_server() -> None:
    """A run that the SDK began, which knows one target, is resumed by ``eval run``, which routes."""
    runs = {plan_rollouts(Tasks.from_rows([task()]), routing).run for routing in (FLAT, ByTaskset({}, FLAT))}
    assert len(runs) == 1


def test_each_row_is_sent_to_its_server_and_stamped_with_it(tmp_path: Path) -> None:
    def play(body: dict[str, Any]) -> Answer:
        return 200, {"episode_id": body["episode_id"], "task_id": body["task"]["task_id"], "result": {"reward": 1.0}}

    servers = {"flat_server": Server(), "first_server": Server(play), "second_server": Server(play)}
    rows = [task("one"), episode("a"), episode("b"), episode("c")]

    async def main() -> None:
        with Store(tmp_path / "r.jsonl") as store:
            routes = {name: Route.to_app(name, server) for name, server in servers.items()}
            await collect(plan_rollouts(Tasks.from_rows(rows), ROUTING), store, routes)

    asyncio.run(main())
    assert [len(server.rows) for server in servers.values()] == [1, 2, 1]
    found = sorted(read(tmp_path / "r.jsonl"), key=lambda row: row["_ng_task_index"])
    assert [row["_ng_environment_server"] for row in found] == [
        "flat_server",
        "first_server",
        "second_server",
        "first_server",
    ]
    assert [row.get("agent_ref") for row in found] == [{"name": "agent"}, None, None, None]
    assert [len(server.verify_responses or ()) for server in servers.values()] == [1, 2, 1]
