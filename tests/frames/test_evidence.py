"""The frames of the evidence: model calls, activations, turns and gaps, with one form whether rows come or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gymkit
from gymkit.frames import gaps, invocations, model_calls, turns
from gymkit.frames.records import Records
from gymkit.testing.agent import call
from gymkit.wire import codec

GRAINS: list[Any] = [model_calls, invocations, turns, gaps]
SCRIPT = [[call("increment_counter", count=3)], [call("get_counter_value", "c2")], "done"]


@pytest.fixture(scope="module")
def rollouts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    output = tmp_path_factory.mktemp("run") / "rollouts.jsonl"
    agent = gymkit.SimpleAgent(gymkit.Model.scripted(SCRIPT, token_ids=True))
    return gymkit.Env("counter").rollouts(agent, output=output, progress=False)


def written(path: Path, *rows: dict[str, Any]) -> Records:
    path.write_bytes(
        b"".join(codec.dumps({"_ng_task_index": 0, "_ng_rollout_index": 0, **row}) + b"\n" for row in rows)
    )
    return Records(path)


@pytest.mark.parametrize("grain", GRAINS, ids=lambda grain: grain.__name__.rpartition(".")[2])
def test_the_form_is_the_same_when_empty(grain: Any, rollouts: Any, tmp_path: Path) -> None:
    empty, full = grain.frame(written(tmp_path / "x.jsonl", {})), grain.frame(Records(rollouts.path))
    assert empty.empty
    assert empty.columns.tolist() == full.columns.tolist() == [column.name for column in grain.COLUMNS]
    assert [str(one) for one in empty.dtypes] == [str(one) for one in full.dtypes]
    assert empty.columns[:3].tolist() == ["task_index", "rollout_index", "attempt"]


def test_a_call_has_its_owner_and_its_cost(rollouts: Any) -> None:
    frame = rollouts.model_calls
    assert len(frame) == 15
    assert set(frame["invocation_id"]) == {"root"}
    assert frame["call_index"].tolist()[:3] == [0, 1, 2]
    assert (frame["status_code"] == 200).all()
    spent = frame.groupby("task_index")["output_tokens"].sum()
    assert spent.tolist() == rollouts.rewards["output_tokens"].tolist()


def test_turns_join_calls(rollouts: Any) -> None:
    joined = rollouts.turns.merge(rollouts.model_calls, on=["task_index", "rollout_index", "model_call_id"])
    assert len(joined) == len(rollouts.turns) == 15
    assert rollouts.turns["answer"].tolist()[:3] == [None, None, "done"] or rollouts.turns["answer"][2] == "done"
    assert rollouts.turns["question"][2] == '{"count":6}'
    assert rollouts.turns["tool_calls"].tolist()[:3] == [1, 2, 2]


def test_an_activation_sums_its_calls(rollouts: Any) -> None:
    first = rollouts.invocations.iloc[0]
    assert (first["role"], first["status"], first["model_calls"], first["tool_calls"]) == ("agent", "completed", 3, 2)
    assert first["output_tokens"] == rollouts.rewards["output_tokens"][0]


def test_gaps_are_told_once_with_their_source(rollouts: Any, tmp_path: Path) -> None:
    assert rollouts.gaps.empty
    gap, other = {"code": "turns_unavailable", "detail": "d"}, {"code": "agent_only", "invocation_id": "root"}
    row = {"ng_trajectory": {"gaps": [gap]}, "ng_model_call_capture": {"gaps": [gap]}}
    frame = gaps.frame(written(tmp_path / "x.jsonl", {**row, "ng_agent_observations": {"gaps": [other]}}))
    assert frame["source"].tolist() == ["trajectory", "observations"]
    assert frame["code"].tolist() == ["turns_unavailable", "agent_only"]


def test_evidence_of_another_shape_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    odd = {"invocations": [{"invocation_id": 3, "model_calls": [{"model_call_id": [1]}]}], "model_calls": [{}]}
    records = written(tmp_path / "x.jsonl", {"ng_trajectory": odd}, {"_ng_rollout_index": 1, "ng_trajectory": "text"})
    assert len(model_calls.frame(records)) == 1
    assert model_calls.frame(records)["invocation_id"].isna().all()
    assert invocations.frame(records)["model_calls"].tolist() == [0]
    assert turns.frame(records).empty
