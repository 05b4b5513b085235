from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.metrics import stripped
from tests.collect.world import METRICS, Answer, Server, plan_of, run, scored, tasks


def metrics_of(output: Path) -> Any:
    return json.loads(output.with_name("r_aggregate_metrics.json").read_bytes())


def answer(row: dict[str, Any]) -> Answer:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    body = {**scored(row)[1], "note": row["number"], "gymkit": {"steps": 1}}
    if row["number"] == 1:
        return 500, {}
    if row["number"] == 2:
        body["mask_sample"] = True
    return 200, {**body, "response": {"output": [1, 2], "usage": usage, "incomplete_details": None}}


def test_rows_go_out_sorted_and_without_their_conversations(tmp_path: Path) -> None:
    server = Server(answer)
    run(tmp_path / "r.jsonl", plan_of(tasks(3), repeats=2, interleave=True), server, concurrency=3)
    rows = server.verify_responses
    assert rows is not None
    assert [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows] == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert rows[0] == {
        "reward": 1.0,
        "note": 0,
        "response": {
            "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
            "incomplete_details": None,
        },
        "_ng_task_index": 0,
        "_ng_rollout_index": 0,
        "agent_ref": {"name": "remote_agent"},
        "_ng_environment_server": "remote_agent_environment_server",
        "_ng_result_type": "legacy_agent",
    }
    assert rows[2]["mask_sample"] is True


def test_the_file_is_a_list_with_one_group(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(2), Server(metrics=(200, {**METRICS, "perf_summary": None, "more": 1})))
    assert metrics_of(output) == [
        {
            "agent_ref": {"name": "remote_agent"},
            "_ng_environment_server": "remote_agent_environment_server",
            **METRICS,
            "repeat_level_metrics": [],
        }
    ]
    run(output, tasks(2), Server(metrics=(200, {**METRICS, "perf_summary": {"x": 1}})))
    assert metrics_of(output)[0]["perf_summary"] == {"x": 1}


def test_without_results_there_are_none(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, tasks(2), Server())
    assert metrics_of(output)
    server = Server(lambda _: (500, {}))
    run(output, tasks(2), server)
    assert server.verify_responses is None
    assert not output.with_name("r_aggregate_metrics.json").exists()


@pytest.mark.parametrize("metrics", [(404, {}), (200, b"oops"), (200, {"agent_metrics": {}})])
def test_metrics_that_cannot_be_had_cost_a_warning_only(
    tmp_path: Path, metrics: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "r.jsonl"
    assert run(output, tasks(2), Server(metrics=metrics)).complete
    assert not output.with_name("r_aggregate_metrics.json").exists()
    assert caplog.text.count("no aggregate metrics: ") == 1


def test_aggregation_can_be_left_out(tmp_path: Path) -> None:
    server = Server()
    run(tmp_path / "r.jsonl", tasks(2), server, aggregate=False)
    assert server.verify_responses is None


def test_a_row_without_a_response_stays_without() -> None:
    assert stripped({"reward": 1.0, "ng_trajectory": {}, "ng_perf": {"turns": 1}}) == {
        "reward": 1.0,
        "ng_perf": {"turns": 1},
    }
