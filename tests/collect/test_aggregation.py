"""``eval aggregate``: files as one run, NeMo Gym's metrics over them, and what does not count."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.aggregation import aggregate_files
from gymkit.errors import ConfigError, StoreError
from gymkit.frames.records import Records
from gymkit.wire import codec
from tests.collect.test_profile import RECORDS
from tests.frames.samples import SERVER, nemo, nemo_failure, planned, write_lines

PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON", "")
ORACLE = """
import json, sys
from pathlib import Path
from nemo_gym import rollout_collection as theirs
from nemo_gym.reward_profile import compute_aggregate_metrics
folder, classes, missing, server = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3] == "True", sys.argv[4]
main, failures, plan = (folder / f"rollouts{end}.jsonl" for end in ("", "_failures", "_materialized_inputs"))
rows = [json.loads(line) for line in main.open()]
keys = {(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows}
added = theirs._failure_rows_counted_as_zero([failures], classes, keys)
if missing:
    added += theirs._missing_rollout_rows_counted_as_zero([plan], [failures], set(keys))
theirs._fill_task_fields(added, rows, [plan], lambda row: row.get("_ng_environment_server") or server)
heavy = ("response", "responses_create_params")
slim = [
    {key: value for key, value in row.items() if key not in heavy}
    | ({"response": {"usage": usage}} if (usage := (row.get("response") or {}).get("usage")) else {})
    for row in sorted(rows + added, key=theirs._rollout_order_key)
]
print(compute_aggregate_metrics(slim).model_dump_json())
"""


def run(folder: Path, name: str, tasks: range, *, failed: range = range(0), lost: range = range(0), **f: Any) -> Path:
    """A run with a result for each of ``tasks``, in reverse order."""
    results = [nemo(task, reward=float(task % 2), **f) for task in reversed(tasks)]
    every = sorted([*tasks, *failed, *lost])
    write_lines(folder / f"{name}_failures.jsonl", [nemo_failure(task, **f) for task in failed])
    write_lines(folder / f"{name}_materialized_inputs.jsonl", [planned(task, expected_count=6, **f) for task in every])
    return write_lines(folder / f"{name}.jsonl", results)


def metrics(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = codec.loads(path.with_name(f"{path.stem}_aggregate_metrics.json").read_bytes())
    return found


@pytest.mark.parametrize("name", ["success", "mixed", "graded"])
def test_the_metrics_are_those_that_nemo_gym_wrote(name: str, tmp_path: Path) -> None:
    aggregate_files(str(RECORDS / name / "rollouts.jsonl"), tmp_path / "rollouts.jsonl")
    theirs = codec.loads((RECORDS / name / "rollouts_aggregate_metrics.json").read_bytes())
    assert metrics(tmp_path / "rollouts.jsonl") == theirs


def test_shards_become_one_run(tmp_path: Path) -> None:
    run(tmp_path, "part-1", range(3), failed=range(5, 6))
    run(tmp_path, "part-2", range(3, 5), lost=range(6, 8))
    found = aggregate_files(f"{tmp_path}/part-2.jsonl, {tmp_path}/part-*.jsonl", tmp_path / "new" / "all.jsonl")
    assert [path.name for path in found.shards] == ["part-2.jsonl", "part-1.jsonl"]
    assert str(found).splitlines()[:2] == [
        "5 results in 2 files",
        "in no metric: 3 rollouts (1 remote_agent_error, 2 missing)",
    ]
    merged = Records(tmp_path / "new" / "all.jsonl")
    lines = (tmp_path / "new" / "all.jsonl").read_bytes().splitlines()
    assert [codec.loads(line)["_ng_task_index"] for line in lines] == [0, 1, 2, 3, 4]
    assert merged.record(5, 0)["_ng_failure_class"] == "remote_agent_error"
    assert len(list(merged.tasks())) == 8
    (entry,) = metrics(tmp_path / "new" / "all.jsonl")
    assert entry["agent_metrics"]["mean/reward"] == 0.4
    assert (entry["agent_ref"], entry["_ng_environment_server"]) == ({"name": "remote_agent"}, SERVER)


def test_rows_are_merged_byte_for_byte(tmp_path: Path) -> None:
    row = b'{"_ng_task_index": 0,"_ng_rollout_index":0, "reward":1.0,"big":9007199254740993,"odd":"\xe2\x80\xa8"}'
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + row + b"\r\n\n")
    aggregate_files(str(tmp_path / "a.jsonl"), tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == row + b"\n"


def test_the_output_is_no_shard_but_may_be_the_only_file(tmp_path: Path) -> None:
    path = run(tmp_path, "a", range(3))
    before = path.read_bytes().splitlines()
    for _ in range(2):
        assert aggregate_files(f"{tmp_path}/*.jsonl", tmp_path / "all.jsonl").results == 3
    aggregate_files(str(path), path)
    assert path.read_bytes().splitlines() == before[::-1]
    assert metrics(path) == metrics(tmp_path / "all.jsonl")


def test_metrics_only(tmp_path: Path) -> None:
    path = run(tmp_path, "a", range(3))
    found = aggregate_files(str(path), tmp_path / "b.jsonl", merge=False)
    assert [each.name for each in found.written] == ["b_aggregate_metrics.json"]
    assert not (tmp_path / "b.jsonl").exists()


def zeros(path: Path, output: Path, *classes: str, missing: bool = False) -> dict[str, Any]:
    found = aggregate_files(str(path), output, merge=False, zero_classes=classes, zero_missing=missing)
    (entry,) = metrics(output)
    return {"mean": entry["agent_metrics"]["mean/reward"], "left": dict(found.left_out), "groups": entry}


def test_failures_and_missing_rollouts_count_as_zero_when_asked(tmp_path: Path) -> None:
    path, output = run(tmp_path, "a", range(2), failed=range(2, 4), lost=range(4, 5)), tmp_path / "b.jsonl"
    assert zeros(path, output)["mean"] == 0.5
    assert zeros(path, output, "other")["left"] == {"remote_agent_error": 2, "missing": 1}
    assert zeros(path, output, "remote_agent_error")["mean"] == 0.25
    found = zeros(path, output, "remote_agent_error", missing=True)
    assert (found["mean"], found["left"]) == (0.2, {})
    assert path.read_bytes().count(b"\n") == 2, "no file gets a score that nobody gave"


def test_a_counted_zero_has_its_tasks_fields_if_results_have_them(tmp_path: Path) -> None:
    path = run(tmp_path, "a", range(2), lost=range(2, 3))
    rows = [nemo(task, expected_count=4) for task in range(2)]
    write_lines(path, rows)
    groups = zeros(path, tmp_path / "b.jsonl", missing=True)["groups"]["group_level_metrics"]
    assert [group["mean/expected_count"] for group in groups] == [4.0, 4.0, 6.0]
    assert "mean/initial_count" not in groups[2], "no result has it, so it is no metric"


def test_only_the_last_attempt_decides_and_its_reward_stays(tmp_path: Path) -> None:
    path = run(tmp_path, "a", range(2))
    attempts = [nemo_failure(2, attempt=0), nemo_failure(2, attempt=1, _ng_failure_class="skipped", reward=0.5)]
    write_lines(tmp_path / "a_failures.jsonl", attempts)
    assert zeros(path, tmp_path / "b.jsonl", "remote_agent_error")["mean"] == 0.5
    assert zeros(path, tmp_path / "b.jsonl", "skipped")["mean"] == 0.5
    assert zeros(path, tmp_path / "b.jsonl", "skipped")["groups"]["agent_metrics"]["max/reward"] == 1.0


def test_runs_of_different_servers_may_share_their_numbers(tmp_path: Path) -> None:
    run(tmp_path, "a", range(2), lost=range(2, 3))
    other = {"_ng_environment_server": "other_server", "agent_ref": {"name": "other"}}
    run(tmp_path, "b", range(3), **other)
    found = aggregate_files(f"{tmp_path}/[ab].jsonl", tmp_path / "c.jsonl", zero_missing=True)
    assert found.missing_as_zero == 1, "the other run's task 2 does not hide it"
    names = [(entry["agent_ref"]["name"], entry["_ng_environment_server"]) for entry in metrics(tmp_path / "c.jsonl")]
    assert names == [("remote_agent", SERVER), ("other", "other_server")]


def test_one_agent_behind_two_servers_goes_by_their_names(tmp_path: Path) -> None:
    run(tmp_path, "a", range(2))
    run(tmp_path, "b", range(2), _ng_environment_server="other_server")
    aggregate_files(f"{tmp_path}/[ab].jsonl", tmp_path / "c.jsonl")
    assert [entry["agent_ref"]["name"] for entry in metrics(tmp_path / "c.jsonl")] == [SERVER, "other_server"]


def test_rows_without_a_stamp_belong_to_their_agents_server(tmp_path: Path) -> None:
    bare = {key: value for key, value in nemo(7).items() if key != "_ng_environment_server"}
    write_lines(tmp_path / "a.jsonl", [nemo(0), bare])
    found = aggregate_files(f"{tmp_path}/a.jsonl", tmp_path / "b.jsonl", merge=False)
    assert len(metrics(tmp_path / "b.jsonl")) == 1
    assert found.unplanned == (tmp_path / "a.jsonl",)
    assert "has no plan beside it" in str(found)


def test_two_results_of_one_rollout_are_refused_with_both_places(tmp_path: Path) -> None:
    run(tmp_path, "a", range(2))
    shutil.copy(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    with pytest.raises(StoreError, match=r"rollout 0 of task 0 at .* has two results, .*a.jsonl:2 and .*b.jsonl:2"):
        aggregate_files(f"{tmp_path}/*.jsonl", tmp_path / "c.jsonl")


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [nemo(0), b"\n", b"{oops}\n"])
    with pytest.raises(StoreError, match=r"a\.jsonl:3: the line is not JSON"):
        aggregate_files(f"{tmp_path}/a.jsonl", tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()


def test_nothing_that_matches_is_an_error(tmp_path: Path) -> None:
    run(tmp_path, "a", range(1))
    with pytest.raises(ConfigError, match="no file matches input_glob="):
        aggregate_files(f"{tmp_path}/*_failures.jsonl,{tmp_path}/x*", tmp_path / "b.jsonl")


def test_without_any_row_there_are_no_metrics(tmp_path: Path) -> None:
    found = aggregate_files(str(run(tmp_path, "a", range(0), failed=range(1))), tmp_path / "b.jsonl")
    assert [path.name for path in found.written] == [f"b{end}" for end in (".jsonl", "_failures.jsonl")] + [
        "b_materialized_inputs.jsonl"
    ]


@pytest.mark.anchor
@pytest.mark.skipif(not PYTHON, reason="GYMKIT_ANCHOR_PYTHON names no Python with nemo-gym")
@pytest.mark.parametrize("classes", [[], ["remote_agent_error"]])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", ["mixed", "graded"])
def test_zeros_count_as_at_nemo_gym(name: str, missing: bool, classes: list[str], tmp_path: Path) -> None:
    shutil.copytree(RECORDS / name, tmp_path / name)
    path = tmp_path / name / "rollouts.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[2:]))  # two rollouts got lost
    ours = zeros(path, tmp_path / "out.jsonl", *classes, missing=missing)["groups"]
    arguments = [path.parent, json.dumps(classes), str(missing), SERVER]
    done = subprocess.run([PYTHON, "-c", ORACLE, *arguments], capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout.splitlines()[-1])
    for part in ("agent_metrics", "key_metrics", "group_level_metrics", "repeat_level_metrics"):
        assert ours[part] == theirs[part], part
