"""The frames of simulated users: the same columns and dtypes whether rows come or not, and whoever wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gymkit.frames import audit, conversations, invocations, outcomes, rewards, tool_calls, trajectories
from gymkit.frames.column import Column
from gymkit.frames.records import Records
from gymkit.wire import codec

MODULES: list[Any] = [conversations, invocations, outcomes, audit]


def _row(**fields: Any) -> dict[str, Any]:
    return {"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 0.5, "mask_sample": False, **fields}


def _records(tmp_path: Path, *rows: dict[str, Any]) -> Records:
    (tmp_path / "r.jsonl").write_bytes(b"".join(codec.dumps(row) + b"\n" for row in rows))
    return Records(tmp_path / "r.jsonl")


def _dtypes(frame: pd.DataFrame) -> list[str]:
    return [str(dtype) for dtype in frame.dtypes]


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
FULL = _row(
    usersim_result={
        "probe_type": "tool_calling",
        "locale": "en_US",
        "persona_name": "Maya",
        "conversation_messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "let me see", "tool_calls": [CALL, {**CALL, "id": "c2"}]},
            {"role": "tool", "content": "1", "tool_call_id": "c1"},
            {"role": "tool", "content": "2", "tool_call_id": "c2"},
            {"role": "assistant", "content": "done", "tool_calls": None},
            {"role": "user", "content": "thanks"},
        ],
        "simulation_outcome": {
            "status": "completed_with_warnings",
            "failure_class": None,
            "failure_detail": "",
            "n_turns": 1,
            "n_tool_calls": 2,
            "early_stop": True,
            "warnings": [{"kind": "used_placeholder_fact"}, {"kind": "used_placeholder_fact"}],
        },
        "retrieval": {"degraded": True},
    },
    verification={
        "scenario_completed": True,
        "verifier_data": {
            "probe_type": "tool_calling",
            "scorer_name": "tool_use",
            "scorer_state": "ok",
            "scorer_status_proposal": True,
            "user_audit": {
                "checks": {"role": "broken", "facts": "unknown"},
                "faults": [{"check": "role", "turn": 1, "quote": "q", "reason": "r", "by": "rule"}],
                "masks": ["role"],
            },
        },
    },
    invocations=[
        {"sequence": 0, "role": "user", "response": {"model": "m", "usage": {"input_tokens": 3}}, "seconds": 0.5},
        {"sequence": 1, "role": "assistant", "response": None, "termination_reason": "usersim_completed"},
    ],
)
"""A row with everything."""


@pytest.mark.parametrize("module", MODULES)
def test_columns_and_dtypes_are_those_declared_also_when_empty(module: Any, tmp_path: Path) -> None:
    columns: tuple[Column[Any], ...] = module.COLUMNS
    empty, full = module.frame(_records(tmp_path, _row())), module.frame(_records(tmp_path, FULL))
    assert len(empty) == 0
    assert len(full) > 0
    assert list(empty) == list(full) == [column.name for column in columns]
    declared = [column.dtype for column in columns]
    assert _dtypes(empty) == _dtypes(full) == declared
    assert [column.name for column in columns[:3]] == ["task_index", "rollout_index", "attempt"]


def test_a_message_that_calls_two_tools_has_two_rows_and_one_text(tmp_path: Path) -> None:
    frame = conversations.frame(_records(tmp_path, FULL))
    assert list(frame["message_index"]) == [0, 1, 1, 2, 3, 4, 5]
    assert list(frame["turn"]) == [1, 1, 1, 1, 1, 1, 2]
    assert list(frame["call_id"].fillna("")) == ["", "c1", "c2", "c1", "c2", "", ""]
    assert list(frame["text"].fillna("")) == ["hi", "let me see", "", "1", "2", "done", "thanks"]


def test_outcomes_and_the_audit(tmp_path: Path) -> None:
    records = _records(tmp_path, FULL)
    (row,) = outcomes.frame(records).to_dict("records")
    assert (row["warnings"], row["retrieval_degraded"], row["scorer_passed"]) == ("used_placeholder_fact", True, True)
    assert pd.isna(row["failure_detail"])
    frame = audit.frame(records)
    assert list(frame["check"]) == ["role", "facts"]
    assert list(frame["masks"]) == [True, False]
    assert list(frame["quote"].fillna("")) == ["q", ""]


def test_invocations_know_what_was_told(tmp_path: Path) -> None:
    frame = invocations.frame(_records(tmp_path, FULL))
    assert list(frame["input_tokens"].isna()) == [False, True]
    assert list(frame["seconds"].isna()) == [False, True]
    assert frame["termination_reason"].iloc[1] == "usersim_completed"


@pytest.mark.parametrize(
    "broken",
    [
        {"usersim_result": None, "verification": None, "invocations": None},
        {"usersim_result": {"conversation_messages": None, "simulation_outcome": None}},
        {"verification": {"verifier_data": {"user_audit": None}}},
        {"usersim_result": "text", "verification": 3, "invocations": {}},
    ],
)
def test_rows_of_another_shape_break_nothing(broken: dict[str, Any], tmp_path: Path) -> None:
    records = _records(tmp_path, _row(**broken))
    for module in [*MODULES, rewards, trajectories, tool_calls]:
        module.frame(records)


def test_the_frames_of_items_have_the_conversation_too_so_that_it_can_be_read_like_any_other(tmp_path: Path) -> None:
    records = _records(tmp_path, FULL)
    items = trajectories.frame(records)
    assert list(items["kind"]) == [
        *("message", "message", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "message", "message"),
    ]
    assert list(items["origin"]) == [
        *("environment", "agent", "agent", "agent"),
        *("environment",) * 2,
        "agent",
        "environment",
    ]
    assert list(items["step"]) == [1, 1, 1, 1, 1, 1, 2, 2]
    calls = tool_calls.frame(records)
    assert list(calls["output"]) == ["1", "2"]
    assert list(calls["executed"]) == [True, True]


def _spoke(role: str, **usage: Any) -> dict[str, Any]:
    return {"role": role, "response": {"output": [{"type": "message"}], "usage": usage or None}}


TOLD = [
    _spoke("user", input_tokens=1000, output_tokens=1000, total_tokens=2000),
    _spoke("assistant", input_tokens=10, output_tokens=2, total_tokens=12),
    _spoke("judge", input_tokens=1000, output_tokens=1000, total_tokens=2000),
    _spoke("assistant", input_tokens=30, output_tokens=5),
]


def _reward(tmp_path: Path, **fields: Any) -> Any:
    (found,) = rewards.frame(_records(tmp_path, {**FULL, **fields})).itertuples()
    return found


def test_rewards_count_the_assistant_and_nobody_else(tmp_path: Path) -> None:
    row = _reward(tmp_path, invocations=TOLD)
    assert (row.input_tokens, row.output_tokens, row.total_tokens) == (40, 7, 47)
    assert (row.steps, row.tool_calls) == (2, 2)
    assert row.tool_calls == len(tool_calls.frame(_records(tmp_path, {**FULL, "invocations": TOLD})))
    frame = invocations.frame(_records(tmp_path, {**FULL, "invocations": TOLD}))
    assert frame.groupby("role", observed=True)["input_tokens"].sum().to_dict() == {
        "user": 1000,
        "assistant": 40,
        "judge": 1000,
    }


def test_tokens_that_were_told_in_part_are_no_sum(tmp_path: Path) -> None:
    row = _reward(tmp_path, invocations=[*TOLD, _spoke("assistant")])
    assert (row.steps, row.tool_calls) == (3, 2)
    assert all(value is pd.NA for value in (row.input_tokens, row.output_tokens, row.total_tokens))
    row = _reward(tmp_path, invocations=[*TOLD[:3], _spoke("assistant", input_tokens=1)])
    assert (row.input_tokens, row.output_tokens, row.total_tokens) == (11, pd.NA, pd.NA)


def test_steps_that_gymkit_counted_are_kept(tmp_path: Path) -> None:
    assert _reward(tmp_path, invocations=TOLD, gymkit={"steps": 7}).steps == 7


def test_a_row_without_a_simulation_has_nothing_counted_for_it(tmp_path: Path) -> None:
    row = _reward(tmp_path, usersim_result=None, invocations=TOLD)
    assert all(value is pd.NA for value in (row.steps, row.tool_calls, row.total_tokens))


def test_what_the_assistant_thought_stands_before_what_it_said(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "so", "reasoning_content": "hm"}]
    items = trajectories.frame(_records(tmp_path, _row(usersim_result={"conversation_messages": talk})))
    assert list(items["kind"]) == ["message", "reasoning", "message"]
    assert list(items["text"]) == ["hi", "hm", "so"]
    assert list(items["origin"]) == ["environment", "agent", "agent"]
