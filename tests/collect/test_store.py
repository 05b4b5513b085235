from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.lock import holder
from gymkit.collect.store import Store
from gymkit.errors import StoreError, StoreLocked
from gymkit.wire import codec
from tests.collect.world import read

HOLD = (
    "import sys; from gymkit.collect.store import Store\n"
    "with Store(sys.argv[1]):\n    print('held', flush=True)\n    sys.stdin.read()\n"
)


def test_all_names_follow_from_the_output_path() -> None:
    paths = Artifacts.of("results/rollouts.jsonl")
    names = [paths.rollouts, paths.failures, paths.materialized, paths.metrics]
    assert [str(name) for name in names] == [
        str(Path("results", "rollouts.jsonl")),
        str(Path("results", "rollouts_failures.jsonl")),
        str(Path("results", "rollouts_materialized_inputs.jsonl")),
        str(Path("results", "rollouts_aggregate_metrics.json")),
    ]


def test_the_folder_is_made_and_both_row_files_exist(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "down" / "rollouts.jsonl"
    with Store(output) as store:
        store.begin([{"n": 1}])
    assert sorted(path.name for path in output.parent.iterdir()) == [
        "rollouts.jsonl",
        "rollouts_failures.jsonl",
        "rollouts_materialized_inputs.jsonl",
    ]
    assert store.paths.failures.read_bytes() == b""


def test_beginning_clears_what_was_there(tmp_path: Path) -> None:
    with Store(tmp_path / "r.jsonl") as store:
        store.begin([{"n": 1}])
        store.append_result({"old": 1})
        store.append_failure({"old": 1})
        store.write_metrics([{"old": 1}])
        store.begin([{"n": 2}])
        store.append_result({"new": 1})
    paths = store.paths
    assert read(paths.rollouts) == [{"new": 1}]
    assert read(paths.failures) == []
    assert read(paths.materialized) == [{"n": 2}]
    assert not paths.metrics.exists()
    assert not list(tmp_path.glob("*.tmp"))


def test_a_plan_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / "r.jsonl") as store:
        store.begin([{"n": 1}])
        store.append_result({"old": 1})
        with pytest.raises(TypeError):
            store.begin([{"n": 2}, {"n": object()}])
    assert read(store.paths.rollouts) == [{"old": 1}]
    assert read(store.paths.materialized) == [{"n": 1}]
    assert not list(tmp_path.glob("*.tmp"))


def test_a_row_is_readable_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    with Store(tmp_path / "r.jsonl") as store:
        store.append_result({"n": 1})
        assert read(store.paths.rollouts) == [{"n": 1}]


def test_metrics_are_indented_json(tmp_path: Path) -> None:
    with Store(tmp_path / "r.jsonl") as store:
        store.write_metrics([{"agent_ref": {"name": "ä\ud800"}}])
    text = store.paths.metrics.read_bytes()
    assert text.startswith(b'[\n  {\n    "agent_ref"')
    assert codec.loads(text) == [{"agent_ref": {"name": "ä\ud800"}}]


def test_a_second_store_in_this_process_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    with Store(output) as first:
        first.append_result({"n": 1})
        with pytest.raises(StoreLocked, match=r"r\.jsonl is being written by another collector"), Store(output):
            pass
    with Store(output) as again:
        assert [line.row for line in again.results()] == [{"n": 1}]


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    command = [sys.executable, "-c", HOLD, str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(StoreLocked) as caught, Store(output):
            pass
        fd = os.open(output, os.O_RDONLY)
        pid = holder(fd)
        os.close(fd)
        assert pid in (None, child.pid)
        assert f"(process {child.pid})" in str(caught.value) or pid is None
        child.kill()
    with Store(output):
        pass


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is a folder: give a file in it"), Store(tmp_path):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"r\.jsonl cannot be written: "), Store(tmp_path / "file" / "r.jsonl"):
        pass
    (tmp_path / "r_failures.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"r_failures\.jsonl cannot be written"), Store(tmp_path / "r.jsonl"):
        pass
    (tmp_path / "r_failures.jsonl").rmdir()
    with Store(tmp_path / "r.jsonl"):
        pass


def test_a_device_or_a_pipe_is_no_file_of_rows_and_stays_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/full")
    for name in ("pipe", "link"):
        with pytest.raises(StoreError, match=rf"{name} is a device or a pipe, which keeps no rows"):
            Store(tmp_path / name).__enter__()
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "link"}


def test_what_stands_in_the_way_of_a_resume(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    with Store(output) as store:
        assert store.obstacle() == f"{output} is not there"
    with Store(output) as store:
        assert store.obstacle() == f"{store.paths.materialized} is not there"
        store.paths.materialized.write_bytes(b"\n")
        assert store.obstacle() == f"{store.paths.materialized} holds no rows"
        store.begin([{"n": 1}])
        assert store.obstacle() is None


def test_problems_are_told_once(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    output.write_bytes(b'{"n":1}\n\n{"n":2}\n{"torn')
    with Store(output) as store:
        store.repair()
        for _ in range(2):
            assert [line.row for line in store.results()] == [{"n": 1}, {"n": 2}]
    assert [str(problem).removeprefix(f"{output}:") for problem in store.problems] == [
        "4: the last line was torn: its 6 bytes were cut off",
        "2: the line is blank",
    ]
