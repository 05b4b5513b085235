"""Data out of a run (Parquet, CSV, Datasets, ATIF) and in from other programs' files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gymkit as gk
from gymkit.errors import ConfigError, StoreError
from gymkit.frames import grains
from gymkit.frames.records import Records
from tests.frames.samples import call, message, nemo, nemo_failure, our_failure, ours, output, planned, write_run

DATA = Path(__file__).resolve().parents[1] / "data"
INSPECT, TRACES = DATA / "inspect_ai", DATA / "verifiers" / "traces.jsonl"
FRAMES = ("tasks", "rewards", "masks", "trajectories", "tool_calls", "failures")
PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON", "")
READER = """
import json, pathlib, sys
from nemo_gym.atif_v1_7 import AtifTrajectoryV1_7
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    found = AtifTrajectoryV1_7.model_validate_json(path.read_bytes())
    print(len(found.steps))
"""


@pytest.fixture
def run(tmp_path: Path) -> gk.Rollouts:
    """A run with everything odd in it: surrogates, separators, a mask, a failure, a rollout that is missing."""
    odd = 'a\ud800b\u2028c\u0085 =1+1, "q"\n'
    rows = [
        ours(0, items=[call("c", "t\u2028", '{"x": 1'), output("c", odd), message(odd)], reward_components={"a": 0.5}),
        nemo(1, reward=0.25),
        ours(2, mask_sample=True, failure_kind="judge_failed", failure_reason=odd),
    ]
    plan = [planned(task, note=odd, big=2**60 + task) for task in range(5)]
    return gk.Rollouts.read(write_run(tmp_path, rows, [our_failure(3), nemo_failure(3, attempt=1)], plan))


def test_parquet_and_back(run: gk.Rollouts, tmp_path: Path) -> None:
    back = gk.Rollouts.from_parquet(run.to_parquet(tmp_path / "frames"))
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(back, name), getattr(run, name))
    assert repr(back.summary()) == repr(run.summary())
    assert str(back.conversation(0)) == str(run.conversation(0))
    assert back.config == run.config
    with pytest.raises(StoreError, match=r"holds frames, not the rows of the run"):
        back.record(0)


def test_an_empty_run_to_parquet_and_back(tmp_path: Path) -> None:
    run = gk.Rollouts.read(write_run(tmp_path))
    back = gk.Rollouts.from_parquet(run.to_parquet(tmp_path / "frames"))
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(back, name), getattr(run, name))


def test_a_folder_without_frames(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"has no rewards\.parquet"):
        gk.Rollouts.from_parquet(tmp_path)


def test_csv_of_the_frames_without_conversations(run: gk.Rollouts, tmp_path: Path) -> None:
    folder = run.to_csv(tmp_path / "csv")
    assert sorted(path.name for path in folder.iterdir()) == ["failures.csv", "masks.csv", "rewards.csv", "tasks.csv"]
    rewards = pd.read_csv(folder / "rewards.csv")
    assert rewards["status"].tolist() == ["scored", "scored", "masked", "failed", "missing"]
    assert rewards["reward"].isna().tolist() == [False, False, True, True, True], "no score is no zero"
    assert pd.read_csv(folder / "tasks.csv")["note"].tolist() == run.tasks["note"].tolist()
    assert pd.read_csv(folder / "tasks.csv")["big"].tolist() == [2**60 + task for task in range(5)]


def test_a_dataset_of_hugging_face(run: gk.Rollouts) -> None:
    pytest.importorskip("datasets")
    dataset = run.to_dataset()
    assert dataset["status"][:] == ["scored", "scored", "masked", "failed", "missing"]
    assert dataset["reward"][:3] == [1.0, 0.25, None]
    assert run.to_dataset("trajectories").num_rows == len(run.trajectories)
    with pytest.raises(ConfigError, match="there is no frame 'reward'; did you mean 'rewards'"):
        run.to_dataset("reward")


def test_frames_by_name(run: gk.Rollouts) -> None:
    assert tuple(grains.COLUMNS) == FRAMES
    for name in FRAMES:
        pd.testing.assert_frame_equal(grains.frame(Records(run.path), name), getattr(run, name))


def test_atif_trajectories(run: gk.Rollouts, tmp_path: Path) -> None:
    folder = run.to_atif(tmp_path / "atif")
    assert sorted(path.name for path in folder.iterdir()) == ["0-0.json", "1-0.json", "2-0.json"]
    found = json.loads((folder / "0-0.json").read_bytes())
    assert found["schema_version"] == "ATIF-v1.7"
    assert [step["source"] for step in found["steps"]] == ["user", "agent", "agent"]
    (asked,) = found["steps"][1]["tool_calls"]
    assert (asked["arguments"], asked["extra"]) == ({}, {"arguments": '{"x": 1'})
    assert found["steps"][1]["observation"]["results"][0]["content"] == 'a\ud800b\u2028c\u0085 =1+1, "q"\n'
    assert found["final_metrics"]["total_completion_tokens"] == 20
    assert found["extra"]["gymkit"]["reward"] == 1.0


@pytest.mark.anchor
@pytest.mark.skipif(not PYTHON, reason="GYMKIT_ANCHOR_PYTHON names no Python with nemo-gym")
def test_nemo_gym_reads_our_trajectories(tmp_path: Path) -> None:
    for name in ("success", "mixed", "graded"):
        run = gk.Rollouts.read(DATA / "nemo_gym" / name / "rollouts.jsonl")
        folder = run.to_atif(tmp_path / name)
        done = subprocess.run([PYTHON, "-c", READER, folder], capture_output=True, text=True, check=True)
        assert len(done.stdout.splitlines()) == run.rewards["status"].isin(["scored", "masked"]).sum()


@pytest.fixture(params=["sums.eval", "sums.json"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> gk.Rollouts:
    return gk.Rollouts.from_inspect(INSPECT / request.param, output=tmp_path / "log.jsonl")


def test_a_log_of_inspect_ai(log: gk.Rollouts) -> None:
    rewards = log.rewards
    assert rewards["task_id"].tolist() == ["1", "1", "2", "2", "odd", "odd"]
    assert rewards["rollout_index"].tolist() == [0, 1] * 3
    assert rewards["status"].tolist() == [*["scored"] * 5, "failed"]
    assert rewards["reward"].dropna().tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert rewards["reward.graded"].dropna().tolist() == [1.0, 1.0, 0.25, 0.25, 0.0]
    assert rewards["total_tokens"].dropna().tolist() == [30, 30, 30, 30, 15]
    assert rewards["steps"].tolist() == [2, 2, 2, 2, 1, 0]
    assert rewards["seconds"].min() > 0
    assert log.failures["message"].tolist() == ["RuntimeError('the sandbox is gone\\u2028for good')"]
    assert log.tasks["level"].tolist()[:2] == ["easy", "hard"]
    assert log.tool_calls["output"].tolist() == ["5", "5", "no negative numbers", "no negative numbers"]
    assert log.tool_calls["arguments"].iloc[0] == '{"a":2,"b":3}'
    said = log.trajectories[log.trajectories["task_index"] == 1]
    assert said["role"].tolist()[:2] == ["system", "user"]
    assert "two and three" in str(log.conversation(0))
    assert log.title == "sums × mockllm/model"
    assert not log.problems


def test_another_scorer(tmp_path: Path) -> None:
    found = gk.Rollouts.from_inspect(INSPECT / "sums.eval", scorer="graded", output=tmp_path / "a.jsonl")
    assert found.rewards["reward"].dropna().tolist() == [1.0, 1.0, 0.25, 0.25, 0.0]
    with pytest.raises(ConfigError, match="no scorer 'grade'; there are includes, graded"):
        gk.Rollouts.from_inspect(INSPECT / "sums.eval", scorer="grade", output=tmp_path / "b.jsonl")


def edited(tmp_path: Path, **sample: Any) -> gk.Rollouts:
    """The log with its first sample changed and its second gone."""
    content = json.loads((INSPECT / "sums.json").read_bytes())
    content["samples"][0] |= sample
    del content["samples"][1]
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(content))
    return gk.Rollouts.from_inspect(path, output=tmp_path / "edited.jsonl")


@pytest.mark.parametrize(
    ("value", "reward"),
    [("P", 0.5), ("N", 0.0), (True, 1.0), (0.3, 0.3), ("maybe", None), (float("nan"), None), ([1.0], None)],
)
def test_what_a_score_is_worth(tmp_path: Path, value: Any, reward: float | None) -> None:
    rewards = edited(tmp_path, scores={"includes": {"value": value}}).rewards
    assert rewards["status"].iloc[0] == ("missing" if reward is None else "scored")
    assert rewards["reward"].iloc[0] is pd.NA if reward is None else rewards["reward"].iloc[0] == reward


def test_samples_that_are_not_there_are_missing_not_forgotten(tmp_path: Path) -> None:
    rewards = edited(tmp_path).rewards
    assert len(rewards) == 6
    assert rewards["status"].value_counts()["missing"] == 1


def test_limits_attachments_and_scores_by_key(tmp_path: Path) -> None:
    found = edited(
        tmp_path,
        limit={"type": "time", "limit": 3.0},
        scores={"includes": {"value": {"a": 1.0, "b": "I"}}, "graded": {"value": 0.5}},
        messages=[{"role": "assistant", "content": "attachment://abc"}],
        attachments={"abc": "long"},
    )
    first = found.rewards.iloc[0]
    assert (first["termination_reason"], first["status"]) == ("deadline", "missing")
    assert found.record(0)["reward_components"] == {"includes.a": 1.0, "includes.b": 0.0, "graded": 0.5}
    assert found.trajectories["text"].iloc[0] == "long"


def test_files_that_are_no_log(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("{")
    with zipfile.ZipFile(tmp_path / "c.eval", "w") as archive:
        archive.writestr("x", "y")
    for name, reason in (("a.json", "has no eval"), ("b.json", "neither"), ("c.eval", "no header"), ("d", "cannot be")):
        with pytest.raises(StoreError, match=reason):
            gk.Rollouts.from_inspect(tmp_path / name, output=tmp_path / "o.jsonl")
    assert not (tmp_path / "o.jsonl").exists()


def test_an_import_may_be_repeated_but_takes_no_other_runs_place(
    log: gk.Rollouts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = log.path.read_bytes()
    again = gk.Rollouts.from_inspect(INSPECT / log.config["imported"]["file"], output=log.path)
    assert again.path.read_bytes() == before
    with pytest.raises(ConfigError, match="holds another run"):
        gk.Rollouts.from_verifiers(TRACES, output=log.path)
    monkeypatch.chdir(tmp_path)
    assert gk.Rollouts.from_inspect(INSPECT / "sums.eval").path == Path("results/sums.jsonl")


def test_a_run_of_verifiers(tmp_path: Path) -> None:
    shutil.copy(TRACES, tmp_path / "traces.jsonl")
    run = gk.Rollouts.from_verifiers(tmp_path, output=tmp_path / "run.jsonl")
    rewards = run.rewards
    assert rewards["task_id"].tolist() == ["sum-1", "sum-1", "sum-2", "sum-2", "sum-3"]
    assert rewards["status"].tolist() == ["scored", "scored", "scored", "failed", "missing"]
    assert rewards["reward"].dropna().tolist() == [1.0, 1.0, 0.25]
    assert rewards["reward.short"].dropna().tolist() == [1.0, 1.0, 1.0]
    assert rewards["termination_reason"].tolist() == ["message", "message", "max_steps", "error", "deadline"]
    assert rewards["total_tokens"].tolist()[:3] == [30, 30, 15]
    assert rewards["seconds"].tolist()[:3] == [2.5] * 3
    assert run.failures["message"].tolist() == ["the provider is gone"]
    assert run.tool_calls["output"].tolist() == ["2", "2"]
    assert run.tasks["answer"].tolist() == ["2", "3", "4"]
    assert "one and one" in str(run.conversation(0))
    assert run.title == "sums × some-model"


@pytest.mark.parametrize("content", [b"", b'{"reward": 1}\n', b"{\n"])
def test_files_that_are_no_traces(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "traces.jsonl").write_bytes(content)
    with pytest.raises(StoreError, match=r"traces\.jsonl"):
        gk.Rollouts.from_verifiers(tmp_path, output=tmp_path / "o.jsonl")
