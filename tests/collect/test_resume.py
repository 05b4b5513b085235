from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymkit.collect.plan import Expansion, Plan, plan_rollouts
from gymkit.collect.resume import attempt_cap
from gymkit.collect.routing import Target
from gymkit.collect.tasks import Tasks
from gymkit.errors import ResumeMismatch
from gymkit.wire import codec
from tests.collect.world import (
    TARGET,
    Answer,
    Server,
    failures,
    key_of,
    materialized,
    plan_of,
    read,
    run,
    scored,
    task,
    tasks,
)

NEMO_GYM = Path(__file__).parents[1] / "data" / "nemo_gym"


def broken(row: dict[str, Any]) -> Answer:
    return 500, {"detail": "broken"}


def odd_ones_fail(row: dict[str, Any]) -> Answer:
    return broken(row) if row["number"] % 2 else scored(row)


def spoil(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def test_only_what_lacks_a_result_runs_again(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(4), Server(odd_ones_fail))
    server = Server()
    outcome = run(output, tasks(4), server, resume=True)
    assert sorted(server.keys) == [(1, 0), (3, 0)]
    assert {row["_ng_attempt_index"] for row in server.rows} == {1}
    assert (outcome.scored, outcome.failed, outcome.missing, outcome.mean) == (4, 0, 0, 1.0)
    assert sorted(key_of(row) for row in read(output)) == [(number, 0) for number in range(4)]
    assert [row.get("_ng_attempt_index") for row in read(output)] == [None, None, 1, 1]
    assert len(failures(output)) == 2
    assert server.verify_responses is not None
    assert len(server.verify_responses) == 4


def test_attempts_are_counted_over_runs_and_bounded(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(1), Server(broken))
    for attempt in (1, 2):
        server = Server(broken)
        outcome = run(output, tasks(1), server, resume=True)
        assert [row["_ng_attempt_index"] for row in server.rows] == [attempt]
    server = Server()
    outcome = run(output, tasks(1), server, resume=True)
    assert server.rows == []
    assert (outcome.failed, outcome.missing) == (1, 0)
    assert [row.get("_ng_attempt_index", 0) for row in failures(output)] == [0, 1, 2]


@pytest.mark.parametrize(("text", "cap", "warned"), [("5", 5, 0), ("1", 1, 0), ("0", 3, 1), ("many", 3, 1), ("", 3, 1)])
def test_the_bound_comes_from_the_environment(
    text: str, cap: int, warned: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NEMO_GYM_MAX_ROLLOUT_ATTEMPTS", text)
    assert attempt_cap() == cap
    assert len(caplog.records) == warned


def test_without_the_variable_there_are_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEMO_GYM_MAX_ROLLOUT_ATTEMPTS", raising=False)
    assert attempt_cap() == 3


def test_a_terminal_failure_is_not_tried_again(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    terminal = {"_ng_failure_class": "remote_agent_error", "_ng_failure_terminal": True, "reward": 0.0}
    run(output, tasks(1), Server(lambda _: (200, terminal)))
    server = Server()
    outcome = run(output, tasks(1), server, resume=True)
    assert server.rows == []
    assert (outcome.scored, outcome.failed) == (0, 1)


def test_masked_and_unscored_rows_are_done(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(2), Server(lambda row: (200, {"mask_sample": True} if row["number"] else {"response": {}})))
    server = Server()
    outcome = run(output, tasks(2), server, resume=True)
    assert server.rows == []
    assert (outcome.scored, outcome.masked, outcome.missing) == (0, 1, 1)


def test_a_dropped_reply_costs_no_attempt(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(1), Server(lambda _: (200, {"_ng_no_persist": True, "_ng_failure_class": "kill_shaped"})))
    server = Server()
    assert run(output, tasks(1), server, resume=True).scored == 1
    assert "_ng_attempt_index" not in server.rows[0]


def test_a_retry_that_is_stopped_stays_failed(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(2), Server(broken))
    stop = asyncio.Event()
    stop.set()
    outcome = run(output, tasks(2), Server(), resume=True, stop=stop)
    assert (outcome.stopped, outcome.failed, outcome.missing) == (True, 2, 0)


def test_a_complete_run_is_left_as_it_is(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(3), Server())
    before = output.read_bytes()
    server = Server()
    assert run(output, tasks(3), server, resume=True).complete
    assert server.rows == []
    assert output.read_bytes() == before


@pytest.mark.parametrize("missing", ["r.jsonl", "r_materialized_inputs.jsonl"])
def test_without_one_of_the_two_files_it_says_why_and_starts_anew(
    tmp_path: Path, missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(2), Server())
    (tmp_path / missing).unlink()
    server = Server()
    assert run(output, tasks(2), server, resume=True).scored == 2
    assert len(server.rows) == 2
    assert len(read(output)) == 2
    assert f"nothing to resume, starting anew: {tmp_path / missing} is not there" in caplog.text


def mismatch(output: Path, plan: Plan) -> list[str]:
    before = {path: path.read_bytes() for path in output.parent.iterdir()}
    with pytest.raises(ResumeMismatch) as caught:
        run(output, plan, Server(), resume=True)
    assert {path: path.read_bytes() for path in output.parent.iterdir()} == before
    return caught.value.differences


def test_another_configuration_is_refused_with_each_difference(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    agent = {"agent": {"max_steps": 8}}
    rows = Tasks.from_rows(tasks(2))
    run(output, plan_rollouts(rows, TARGET, settings=agent), Server(odd_ones_fail))
    other = plan_rollouts(
        Tasks.from_rows(tasks(3)),
        Target("other_agent", TARGET.environment_server, TARGET.result_type),
        settings={"agent": {"max_steps": 4}},
        expansion=Expansion(repeats=2, responses_create_params={"temperature": 0.5}),
    )
    assert mismatch(output, other) == [
        "agent.max_steps: 8 on disk, 4 asked for",
        'agent_ref.name: "remote_agent" on disk, "other_agent" asked for',
        "num_repeats: 1 on disk, 2 asked for",
        "responses_create_params.temperature: unset on disk, 0.5 asked for",
        "tasks.rows: 2 on disk, 3 asked for",
    ]


@pytest.mark.parametrize("expansion", [{}, {"repeats": 2, "interleave": True, "add_seed": True}])
def test_a_changed_task_is_named_with_its_line(tmp_path: Path, expansion: dict[str, Any]) -> None:
    output = tmp_path / "r.jsonl"
    run(output, plan_of(tasks(5), **expansion), Server(odd_ones_fail))
    path = tmp_path / "changed.jsonl"
    changed = tasks(5)
    changed[3]["number"] = 33
    path.write_bytes(b"\n".join(codec.dumps(row) for row in changed))
    with Tasks.from_path(path) as source:
        plan = plan_rollouts(source, TARGET, expansion=Expansion(**expansion))
        assert mismatch(output, plan) == [f"the task at {path}:4 was another one"]


def test_order_of_dispatch_may_change(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, plan_of(tasks(2), repeats=2), Server(odd_ones_fail))
    assert run(output, plan_of(tasks(2), repeats=2, interleave=True), Server(), resume=True).scored == 4


def test_a_run_that_names_no_configuration_goes_on_with_its_own_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """NeMo Gym's files: no fingerprint, no environment server in the plan, other tasks than ours perhaps."""
    output = tmp_path / "r.jsonl"
    planned = [task("old", _ng_task_index=n, _ng_rollout_index=0, agent_ref={"name": "theirs"}) for n in range(3)]
    output.write_bytes(codec.dumps({"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0}) + b"\n")
    output.with_name("r_materialized_inputs.jsonl").write_bytes(b"".join(codec.dumps(row) + b"\n" for row in planned))
    server = Server()
    outcome = run(output, tasks(7), server, resume=True)
    assert sorted(server.keys) == [(1, 0), (2, 0)]
    assert (outcome.expected, outcome.scored) == (3, 3)
    assert {row["agent_ref"]["name"] for row in read(output)[1:]} == {"theirs"}
    assert "names no configuration" in caplog.text
    assert materialized(output) == planned


@pytest.mark.parametrize(
    ("name", "retried", "told"),
    [
        ("mixed", {(task, rollout): 2 for task in (3, 4) for rollout in range(3)}, (30, 27, 0, 3)),
        ("graded", {(3, 1): 1, (4, 1): 1}, (12, 9, 3, 0)),
        ("success", {}, (5, 5, 0, 0)),
    ],
)
def test_runs_of_nemo_gym_go_on(
    tmp_path: Path, name: str, retried: dict[tuple[int, int], int], told: tuple[int, int, int, int]
) -> None:
    shutil.copytree(NEMO_GYM / name, tmp_path, dirs_exist_ok=True)
    server = Server()
    outcome = run(tmp_path / "rollouts.jsonl", tasks(1), server, resume=True)
    assert {key_of(row): row["_ng_attempt_index"] for row in server.rows} == retried
    assert (outcome.expected, outcome.scored, outcome.masked, outcome.failed) == told


def test_torn_and_broken_lines_cost_only_their_own_rollouts(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(4), Server(odd_ones_fail))
    lines = output.read_bytes().split(b"\n")
    output.write_bytes(b"\n".join([lines[0][:-5], b"", lines[1][:40]]))
    spoil(output.with_name("r_failures.jsonl"), b'{"torn')
    server = Server()
    outcome = run(output, tasks(4), server, resume=True)
    assert sorted(server.keys) == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert outcome.scored == 4
    assert len(failures(output)) == 2
    assert lines[0][:-5] in output.read_bytes(), "a broken line in the middle is left for a person to look at"


def test_a_plan_that_lost_lines_is_written_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    output = tmp_path / "r.jsonl"
    plan = plan_of(tasks(4))
    run(output, plan, Server(odd_ones_fail))
    path = output.with_name("r_materialized_inputs.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert run(output, plan, Server(), resume=True).scored == 4
    assert path.read_bytes() == whole
    assert "lacks 1 of its 4 rollouts: written anew" in caplog.text


def test_rows_of_no_planned_rollout_and_second_rows_do_not_count(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(2), Server(odd_ones_fail))
    (row,) = read(output)
    strange = [row, {**row, "_ng_task_index": 9}, {"reward": 1.0}, {**row, "_ng_task_index": "0"}]
    spoil(output, b"".join(codec.dumps(each) + b"\n" for each in strange))
    outcome = run(output, tasks(2), Server(), resume=True)
    assert (outcome.expected, outcome.scored) == (2, 2)


ANSWERS: dict[str, Answer] = {
    "score": (200, {"reward": 1.0}),
    "zero": (200, {"reward": 0.0}),
    "mask": (200, {"reward": 0.0, "mask_sample": True}),
    "fail": (500, {}),
    "drop": (200, {"_ng_no_persist": True}),
}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(ANSWERS)), min_size=1, max_size=8), st.data())
def test_a_run_cut_anywhere_and_resumed_equals_one_that_was_not(answers: list[str], data: st.DataObject) -> None:
    """Rows and counts are the same whatever the number of bytes that reached the disk."""

    def handle(row: dict[str, Any]) -> Answer:
        return ANSWERS[answers[row["number"]]]

    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder, "whole.jsonl"), Path(folder, "part.jsonl")
        expected = run(whole, tasks(len(answers)), Server(handle), concurrency=1)
        run(part, tasks(len(answers)), Server(handle), concurrency=1)
        for path in (part, part.with_name("part_failures.jsonl")):
            content = path.read_bytes()
            path.write_bytes(content[: len(content) * data.draw(st.integers(0, 1000)) // 1000])
        outcome = run(part, tasks(len(answers)), Server(handle), resume=True)
        assert sorted(map(bare, read(part)), key=str) == sorted(map(bare, read(whole)), key=str)
    for name in ("expected", "scored", "masked", "failed", "missing", "mean", "bounds"):
        assert getattr(outcome, name) == getattr(expected, name)


def bare(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("gymkit", "_ng_attempt_index")}


CHILD = """
import asyncio, signal, sys
from gymkit.collect.collector import collect
from gymkit.collect.store import Store
from gymkit.servers.route import Route
from tests.collect.world import Server, plan_of, routes, scored, tasks

async def handle(row):
    if row["number"] >= 30:
        print("hanging", flush=True)
        await asyncio.Event().wait()
    return scored(row)

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with Store(sys.argv[1]) as store:
        route = Route.to_app("environment", Server(handle))
        print(await collect(plan_of(tasks(40)), store, routes(route), concurrency=4, stop=stop), flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_a_killed_process_leaves_complete_lines_and_a_resumable_run(tmp_path: Path, end: str) -> None:
    output = tmp_path / "r.jsonl"
    command = [sys.executable, "-c", CHILD, str(output)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as child:
        assert child.stdout is not None
        for _ in range(4):
            assert child.stdout.readline() == "hanging\n"
        getattr(child, end)()
        told = child.stdout.read()
    assert told.startswith("Stopped: 30 of 40 rollouts scored, 10 missing") == (end == "terminate")
    assert sorted(key_of(row) for row in read(output)) == [(number, 0) for number in range(30)]
    server = Server()
    outcome = run(output, tasks(40), server, resume=True)
    assert sorted(server.keys) == [(number, 0) for number in range(30, 40)]
    assert all("_ng_attempt_index" not in row for row in server.rows)
    assert outcome.complete
    assert sorted(key_of(row) for row in read(output)) == [(number, 0) for number in range(40)]
