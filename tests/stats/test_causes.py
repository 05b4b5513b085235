import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.stats import failures_by_cause
from gymkit.stats.causes import cause
from tests.stats.runs import STEADY


def failures(*rows: tuple[str | None, str | None, str | None, int, int, int]) -> pd.DataFrame:
    columns = ["failure_class", "failure_kind", "message", "task_index", "rollout_index", "attempt"]
    return pd.DataFrame(rows, columns=columns)


def test_what_differs_by_accident_does_not_part_a_group() -> None:
    found = failures_by_cause(
        failures(
            ("remote_agent_error", "timeout", "no answer from http://127.0.0.1:9000/v1 in 30 s", 0, 0, 0),
            ("remote_agent_error", "timeout", "no answer from http://127.0.0.1:9001/v1 in 2.5 s", 0, 0, 1),
            ("remote_agent_error", "timeout", "no answer from http://127.0.0.1:9001/v1 in 2.5 s", 3, 1, 0),
            ("remote_agent_error", "not_json", "the body is not JSON", 2, 0, 0),
        )
    )
    assert found[["failure_kind", "attempts", "rollouts", "tasks"]].values.tolist() == [
        ["timeout", 3, 2, 2],
        ["not_json", 1, 1, 1],
    ]
    assert found["cause"][0] == "no answer from <url> in <n> s"


def test_the_example_is_the_first_as_recorded() -> None:
    row = failures_by_cause(failures(("a", "b", "x 1", 7, 2, 1), ("a", "b", "x 2", 8, 0, 0))).iloc[0]
    assert (row["message"], row["task_index"], row["rollout_index"], row["attempt"]) == ("x 1", 7, 2, 1)


def test_another_kind_is_another_group_and_a_missing_one_is_a_group() -> None:
    found = failures_by_cause(
        failures(("a", "b", "x", 0, 0, 0), ("a", None, "x", 1, 0, 0), (None, None, None, 2, 0, 0))
    )
    assert len(found) == 3 and found["attempts"].sum() == 3


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("session 3f9a1c20be77 expired", "session <id> expired"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id <id>"),
        ("object at 0x7f3a", "object at <id>"),
        ("status 502,  then\n 503", "status <n>, then <n>"),
        ("defaced decade", "defaced decade"),
        ("at 12:30:01.5", "at <n>"),
    ],
)
def test_causes_in_words(message: str, expected: str) -> None:
    assert cause(message) == expected


@STEADY
@given(st.text(max_size=700))
def test_a_cause_is_short_and_its_own_cause(message: str) -> None:
    once = cause(message)
    assert len(once) <= 2500
    assert cause(once[:500]).startswith(once[:100]) or "<" in once


def test_a_huge_message_is_cut_before_it_is_read() -> None:
    assert cause("x" * 500 + "1" * 10_000_000) == "x" * 500


def test_columns_and_types_are_the_same_when_empty_or_bare() -> None:
    full = failures_by_cause(failures(("a", "b", "x", 0, 0, 0)))
    empty = failures_by_cause(failures())
    bare = failures_by_cause(pd.DataFrame({"message": ["x", "x"]}))
    assert full.dtypes.tolist() == empty.dtypes.tolist() == bare.dtypes.tolist()
    assert full.columns.tolist() == empty.columns.tolist() == bare.columns.tolist()
    assert bare["attempts"].tolist() == [2]


def test_categories_are_read_like_text() -> None:
    frame = failures(("a", "b", "x", 0, 0, 0)).astype({"failure_class": "category", "failure_kind": "category"})
    assert failures_by_cause(frame)["failure_class"].tolist() == ["a"]


def test_messages_are_needed() -> None:
    with pytest.raises(ConfigError, match="no column 'message'"):
        failures_by_cause(pd.DataFrame({"error": ["x"]}))
