from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typing_extensions
from pydantic import TypeAdapter

from gymkit.wire.codec import loads
from gymkit.wire.failures import (
    FAILURE_CLASSES,
    NO_REWARD,
    REMOTE_AGENT_KINDS,
    SHARED_KINDS,
    is_known_kind,
)
from gymkit.wire.rollouts import Facts, FailureRow, ResultRow, Stamps, sink
from tests.wire.builders import answer, call, output, response, task

NEMO_GYM = Path(__file__).parents[1] / "data" / "nemo_gym"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"reward": 1.0}, "main"),
        ({"reward": 0.0, "mask_sample": True}, "main"),
        ({}, "main"),
        ({"_ng_failure_class": "judge_failed", "reward": 0.0}, "failures"),
        ({"_ng_failure_class": None}, "failures"),
        ({"_ng_failure_class": "cancelled", "_ng_no_persist": True}, "none"),
        ({"_ng_no_persist": True, "reward": 1.0}, "none"),
        ({"_ng_no_persist": False, "reward": 1.0}, "main"),
    ],
)
def test_a_row_goes_to_one_file(row: dict[str, Any], expected: str) -> None:
    assert sink(row) == expected


def test_our_rows_have_the_types_that_are_written_down() -> None:
    facts = {
        "run": "3f9a1c20be77",
        "started_at": 1767225600.123,
        "seconds": 1.234,
        "steps": 2,
        "termination_reason": "message",
        "calls": [{"item": 1, "step": 1, "error": None, "seconds": 0.0004}],
    }
    row = {
        **task(),
        "response": response(call(), output(), answer()),
        "reward": 1.0,
        "_ng_task_index": 0,
        "_ng_rollout_index": 0,
        "agent_ref": {"name": "remote_agent"},
        "gymkit": facts,
    }
    assert TypeAdapter(ResultRow).validate_python(row, strict=True) == row
    assert TypeAdapter(Facts).validate_python(facts, strict=True) == facts


@pytest.mark.parametrize(("name", "kind"), [("rollouts.jsonl", ResultRow), ("rollouts_failures.jsonl", FailureRow)])
def test_rows_that_nemo_gym_wrote_have_them_too(name: str, kind: Any) -> None:
    rows = [loads(line) for path in NEMO_GYM.glob(f"*/{name}") for line in path.read_bytes().split(b"\n") if line]
    assert rows
    adapter = TypeAdapter(kind)
    for row in rows:
        adapter.validate_python(row)
        assert sink(row) == ("main" if kind is ResultRow else "failures")


def test_every_stamp_is_either_the_collector_s_or_ours() -> None:
    names = set(typing_extensions.get_type_hints(Stamps))
    assert {name for name in names if not name.startswith("_ng_")} == {
        "agent_ref", "task_source", "skills_ref", "gymkit",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", [*SHARED_KINDS, *REMOTE_AGENT_KINDS, NO_REWARD, "usersim:scorer_inconclusive", "a:b_2"]
)
def test_kinds_that_are_known(name: str) -> None:
    assert is_known_kind(name)


@pytest.mark.parametrize("name", ["", "Timeout", "a:", ":b", "a:b:c", "A:b", "a:b\n", "1a:b", "my_kind"])
def test_kinds_that_are_not_known(name: str) -> None:
    assert not is_known_kind(name)


def test_no_name_means_two_things() -> None:
    assert not SHARED_KINDS.keys() & REMOTE_AGENT_KINDS.keys()
    assert all([*SHARED_KINDS.values(), *REMOTE_AGENT_KINDS.values(), *FAILURE_CLASSES.values()])
