from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.collector import collect
from gymkit.collect.outcome import Outcome
from gymkit.collect.plan import plan_rollouts
from gymkit.collect.progress import Progress
from gymkit.collect.store import Store
from gymkit.collect.tasks import Tasks
from gymkit.errors import ConfigError, IncompleteRun, InputError, StoreError
from gymkit.servers.hosting import serve
from gymkit.servers.route import Route
from tests.collect.world import (
    TARGET,
    Answer,
    Server,
    failures,
    key_of,
    materialized,
    plan_of,
    read,
    routes,
    run,
    scored,
    task,
    tasks,
)


def sorted_answer(row: dict[str, Any]) -> Answer:
    """By the task's number: scored 1, scored 0, masked, failed by declaration, dropped, broken, without a reward."""
    match row["number"] % 7:
        case 0:
            return scored(row, 1.0)
        case 1:
            return scored(row, 0.0)
        case 2:
            return 200, {"reward": 0.0, "mask_sample": True, "failure_kind": "judge_unparseable"}
        case 3:
            return 200, {
                "reward": 0.0,
                "_ng_failure_class": "remote_agent_error",
                "error": "no",
                "failure_kind": "seed",
            }
        case 4:
            return 200, {"reward": 1.0, "_ng_no_persist": True}
        case 5:
            return 500, {"detail": "broken", "kind": "internal"}
        case _:
            return 200, {"response": {}}


def test_every_kind_of_rollout_lands_in_its_place(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    outcome = run(output, tasks(7), Server(sorted_answer))
    assert [row["_ng_task_index"] for row in read(output)] == [0, 1, 2, 6]
    assert [row["_ng_task_index"] for row in failures(output)] == [3, 5]
    assert [row["_ng_task_index"] for row in materialized(output)] == list(range(7))
    counts = (outcome.expected, outcome.scored, outcome.masked, outcome.failed, outcome.missing)
    assert counts == (7, 2, 1, 2, 2)
    assert outcome.mean == 0.5
    assert outcome.bounds == (1 / 7, 6 / 7)
    assert {cause.kind: cause.count for cause in outcome.causes} == {"seed": 1, "internal": 1}
    assert not outcome.complete
    assert not outcome.stopped


def test_a_result_row_is_the_reply_with_its_stamps(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    server = Server(
        lambda row: (200, {**scored(row)[1], "gymkit": {"steps": 2, "run": "forged"}, "_ng_task_index": 99})
    )
    row = {**task(), "task_source": "counter", "skills_ref": {"path": "s"}, "verifier_metadata": {"answer": 4}}
    before = time.time()
    outcome = run(output, [row], server)
    (result,) = read(output)
    facts = result.pop("gymkit")
    assert result == {
        **scored(row)[1],
        "_ng_task_index": 0,
        "_ng_rollout_index": 0,
        "agent_ref": {"name": "remote_agent"},
        "task_source": "counter",
        "skills_ref": {"path": "s"},
        "_ng_environment_server": "remote_agent_environment_server",
        "_ng_result_type": "legacy_agent",
    }
    assert facts["run"] == outcome.run == materialized(output)[0]["gymkit"]["run"]
    assert before <= facts["started_at"] <= time.time()
    assert 0 <= facts["seconds"] < 10
    assert facts["steps"] == 2
    assert server.rows == [{key: value for key, value in materialized(output)[0].items() if key != "gymkit"}]


def test_over_sockets_as_in_process(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    hosted = serve(Server(sorted_answer))

    async def main() -> Outcome:
        route = Route.to_url("environment", hosted.url)
        with Store(output) as store:
            outcome = await collect(plan_of(tasks(70)), store, routes(route), concurrency=8)
        await route.aclose()
        return outcome

    try:
        outcome = asyncio.run(main())
    finally:
        hosted.stop()
    assert (outcome.scored, outcome.masked, outcome.failed, outcome.missing) == (20, 10, 20, 20)
    assert len(read(output)) == 40
    assert len(failures(output)) == 20


def test_a_dead_server_fails_every_rollout_in_one_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    output = tmp_path / "rollouts.jsonl"

    async def main() -> Outcome:
        route = Route.to_url("environment", "http://127.0.0.1:9")
        with Store(output) as store:
            outcome = await collect(plan_of(tasks(235)), store, routes(route))
        await route.aclose()
        return outcome

    outcome = asyncio.run(main())
    assert str(outcome).startswith(
        "0 of 235 rollouts scored, 235 failed: no mean reward. Failures: 235 unreachable, e.g."
    )
    assert outcome.mean is None
    assert {row["_ng_failure_class"] for row in failures(output)} == {"agent_request_failed"}
    assert output.read_bytes() == b""
    assert len(caplog.records) == 2  # a line for the first and a line for all
    assert "235 rollouts failed (unreachable)" in caplog.text


def test_an_app_that_raises_or_cancels_itself_fails_its_rollout_only(tmp_path: Path) -> None:
    def handle(row: dict[str, Any]) -> Answer:
        if row["number"] == 1:
            raise RuntimeError("a bug")
        if row["number"] == 2:
            raise asyncio.CancelledError
        return scored(row)

    output = tmp_path / "rollouts.jsonl"
    outcome = run(output, tasks(4), Server(handle), concurrency=1)
    assert (outcome.scored, outcome.failed) == (2, 2)
    assert [row["_ng_failure_type"] for row in failures(output)] == ["Unreachable", "CancelledError"]


def test_a_reply_that_cannot_be_written_fails_its_rollout_only(tmp_path: Path) -> None:
    deep = b'{"reward":1.0,"deep":' + b"[" * 1010 + b"]" * 1010 + b"}"
    output = tmp_path / "rollouts.jsonl"
    outcome = run(output, tasks(2), Server(lambda row: scored(row) if row["number"] else (200, deep)))
    assert (outcome.scored, outcome.failed) == (1, 1)
    assert failures(output)[0]["_ng_failure_message"] == "nested too deeply"


def test_a_rollout_that_does_not_come_back_is_cut_by_the_timeout(tmp_path: Path) -> None:
    async def handle(row: dict[str, Any]) -> Answer:
        if row["number"] == 0:
            await asyncio.Event().wait()
        return scored(row)

    output = tmp_path / "rollouts.jsonl"
    outcome = run(output, tasks(3), Server(handle), rollout_timeout=0.05)
    assert (outcome.scored, outcome.failed) == (2, 1)
    (failure,) = failures(output)
    assert failure["failure_kind"] == "timeout"
    assert "rollout_timeout=0.05 s" in failure["_ng_failure_message"]


def test_no_more_are_in_flight_than_asked_for(tmp_path: Path) -> None:
    state = {"now": 0, "most": 0}

    async def handle(row: dict[str, Any]) -> Answer:
        state["now"] += 1
        state["most"] = max(state["most"], state["now"])
        await asyncio.sleep(0)
        state["now"] -= 1
        return scored(row)

    assert run(tmp_path / "r.jsonl", tasks(50), Server(handle), concurrency=7).scored == 50
    assert state["most"] == 7


def test_progress_follows_the_run(tmp_path: Path) -> None:
    progress = Progress()
    seen: list[tuple[int, int, list[str]]] = []

    def handle(row: dict[str, Any]) -> Answer:
        seen.append((progress.done, progress.total, progress.silent(0)))
        return scored(row, 0.5)

    run(tmp_path / "r.jsonl", tasks(3), Server(handle), concurrency=1, progress=progress)
    assert seen == [(number, 3, [f"task {number}, rollout 0"]) for number in range(3)]
    assert (progress.done, progress.mean_reward, progress.in_flight, progress.running) == (3, 0.5, {}, False)


def cut(output: Path, act: Callable[[asyncio.Event, asyncio.Task[Outcome]], object]) -> Outcome:
    """Two of six rollouts score, the others hang; then ``act``."""
    stop = asyncio.Event()

    async def main() -> Outcome:
        async def hang_after_two(row: dict[str, Any]) -> Answer:
            if row["number"] >= 2:
                asyncio.get_running_loop().call_soon(act, stop, running)
                await asyncio.Event().wait()
            return scored(row)

        with Store(output) as store:
            route = Route.to_app("environment", Server(hang_after_two))
            running = asyncio.create_task(collect(plan_of(tasks(6)), store, routes(route), concurrency=3, stop=stop))
            return await running

    return asyncio.run(main())


def test_a_stop_keeps_what_is_done_and_leaves_no_row_for_the_rest(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    outcome = cut(output, lambda stop, _: stop.set())
    assert outcome.stopped
    assert (outcome.scored, outcome.failed, outcome.missing) == (2, 0, 4)
    assert sorted(key_of(row) for row in read(output)) == [(0, 0), (1, 0)]
    assert failures(output) == []
    assert not output.with_name("rollouts_aggregate_metrics.json").exists()
    assert str(outcome).startswith("Stopped: 2 of 6 rollouts scored, 4 missing")


def test_a_cancelled_run_leaves_the_same(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    with pytest.raises(asyncio.CancelledError):
        cut(output, lambda _, running: running.cancel())
    assert sorted(key_of(row) for row in read(output)) == [(0, 0), (1, 0)]
    assert failures(output) == []
    outcome = run(output, tasks(6), Server(), resume=True)
    assert (outcome.scored, outcome.expected) == (6, 6)


def test_a_rollout_that_ends_in_spite_of_its_cancellation_leaves_no_row(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    stop = asyncio.Event()

    async def stubborn(row: dict[str, Any]) -> Answer:
        if row["number"] == 2:
            stop.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return scored(row)
        raise AssertionError

    server = Server(stubborn)
    outcome = run(output, tasks(6), server, concurrency=3, stop=stop)
    assert (outcome.stopped, outcome.missing) == (True, 6)
    assert read(output) == []
    assert len(server.rows) == 3


def test_an_app_that_never_waits_can_be_stopped(tmp_path: Path) -> None:
    stop = asyncio.Event()

    def handle(row: dict[str, Any]) -> Answer:
        if row["number"] == 5:
            stop.set()
        return scored(row)

    outcome = run(tmp_path / "r.jsonl", tasks(1000), Server(handle), concurrency=2, stop=stop)
    assert outcome.stopped
    assert outcome.scored < 20


def test_a_disk_that_takes_no_more_ends_the_run(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    plan = plan_of(tasks(50))

    async def main() -> None:
        with Store(output) as store:

            async def handle(row: dict[str, Any]) -> Answer:
                if row["number"] == 10:
                    store._main.fd, broken = 10_000, store._main.fd
                    asyncio.get_running_loop().call_later(0, setattr, store._main, "fd", broken)
                return scored(row)

            await collect(plan, store, routes(Route.to_app("environment", Server(handle))), concurrency=2)

    with pytest.raises(StoreError, match=r"rollouts\.jsonl cannot take another row"):
        asyncio.run(main())
    assert 9 <= len(read(output)) <= 11


def test_required_completeness_is_an_error_once_all_is_written(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    with pytest.raises(IncompleteRun, match="2 of 7 rollouts scored, 1 masked, 2 failed, 2 missing"):
        run(output, tasks(7), Server(sorted_answer), require_complete=True)
    assert len(read(output)) == 4
    assert output.with_name("rollouts_aggregate_metrics.json").exists()
    masked = Server(lambda row: (200, {"reward": 0.0, "mask_sample": True}))
    assert run(output, tasks(2), masked, require_complete=True).masked == 2


def test_bad_tasks_cost_nothing_that_was_collected(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    run(output, tasks(2), Server())
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError):
        run(output, [task(), {}], Server())
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_tasks_may_be_the_failures_of_the_same_output(tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    run(output, tasks(7), Server(sorted_answer))
    with Tasks.from_path(output.with_name("rollouts_failures.jsonl")) as failed:
        outcome = run(output, plan_rollouts(failed, TARGET), Server())
    assert (outcome.scored, outcome.expected) == (2, 2)
    assert [key_of(row) for row in materialized(output)] == [(0, 0), (1, 0)]
    assert sorted(row["number"] for row in materialized(output)) == [3, 5]


def test_concurrency_must_make_sense(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="concurrency must be at least 1, not 0"):
        run(tmp_path / "r.jsonl", tasks(1), Server(), concurrency=0)


def test_materialized_rows_run_as_episodes(tmp_path: Path) -> None:
    def handle(body: dict[str, Any]) -> Answer:
        answer = body["task"]["task_input"]["answer"]
        ended: dict[str, Any] = {"episode_id": body["episode_id"], "task_id": body["task"]["task_id"]}
        if answer == 4:
            return 200, {**ended, "result": {"reward": 1.0}, "failure": None}
        return 200, {**ended, "result": None, "failure": {"failure_reason": "no", "terminal": True}}

    output = tmp_path / "rollouts.jsonl"
    rows = [{"task_id": {"taskset": "t", "task_id": str(n)}, "task_input": {"answer": n}} for n in (4, 5)]
    outcome = run(output, rows, Server(handle))
    assert (outcome.scored, outcome.failed) == (1, 1)
    (result,), (failure,) = read(output), failures(output)
    assert (key_of(result), result["reward"], result["_ng_task_id"]) == ((0, 0), 1.0, {"taskset": "t", "task_id": "4"})
    assert (failure["_ng_failure_class"], failure["_ng_failure_terminal"]) == ("environment_server_failed", True)


def test_memory_does_not_grow_with_the_number_of_rollouts(tmp_path: Path) -> None:
    peaks = []
    for repeats in (10, 200):
        plan = plan_of(tasks(20), repeats=repeats)
        tracemalloc.start()
        server = Server(scored)
        server.rows = _Forgetful()
        outcome = run(tmp_path / "r.jsonl", plan, server, concurrency=16, aggregate=False)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert outcome.scored == 20 * repeats
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 50_000


class _Forgetful(list[dict[str, Any]]):
    def append(self, row: dict[str, Any]) -> None:
        pass
