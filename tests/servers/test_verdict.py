"""What a verifier may return, and what is refused rather than misread."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.servers.verdict import Verdict, judge_failed
from gymkit.wire.rollouts import sink


@pytest.mark.parametrize("value", [1, 0.5, True, np.float64(0.25), np.int64(1), np.True_, Verdict(1.0), {"reward": 1}])
def test_a_number_a_verdict_and_a_dict_are_verdicts(value: Any) -> None:
    fields = Verdict.of(value).fields()
    assert type(fields["reward"]) is float
    assert fields["mask_sample"] is False
    assert fields.keys() == {"reward", "mask_sample"}


def test_a_dict_has_the_fields_of_the_wire_and_others_are_extras() -> None:
    said = {
        "reward": np.float32(0.5),
        "reward_components": {"right": 1, "short": np.float64(0.0)},
        "mask_sample": True,
        "failure_kind": "anagram:torn",
        "failure_reason": "the board was torn",
        "letters": 6,
        "guesses": ["a", "b"],
    }
    fields = Verdict.of(said).fields()
    assert fields["reward_components"] == {"right": 1.0, "short": 0.0}
    assert (fields["letters"], fields["guesses"]) == (6, ["a", "b"])
    assert (fields["mask_sample"], fields["failure_kind"]) == (True, "anagram:torn")


def test_a_masked_dict_needs_no_reward() -> None:
    verdict = Verdict.of({"mask_sample": True, "failure_reason": "no board"})
    assert (verdict.reward, verdict.mask_sample, verdict.failure_reason) == (0.0, True, "no board")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "None as the reward, which is no number"),
        ("1.0", "'1.0' as the reward, which is no number"),
        ([1.0], r"\[1.0\] as the reward, which is no number"),
        (math.nan, "nan as the reward, which is not finite"),
        ({"reward": math.inf}, "inf as the reward, which is not finite"),
        (Verdict(-math.inf), "-inf as the reward, which is not finite"),
        ({"reward": None}, "None as the reward"),
        ({}, "no reward, only an empty dict"),
        ({"letters": 3}, "no reward, only letters"),
        ({"mask_sample": False}, "no reward"),
        ({"reward": 1, "mask": True}, "'mask', which has no meaning: write 'mask_sample'"),
        ({"reward": 1, "reason": "x"}, "write 'failure_reason'"),
        ({"score": 1}, "write 'reward'"),
        ({"rewards": 1}, "write 'reward'"),
        ({"reward": 1, "mask_sampl": True}, "write 'mask_sample'"),
        ({"reward": 1, "mask_sample": "yes"}, "mask_sample='yes': True or False is needed"),
        ({"reward": 1, "failure_kind": 3}, "a failure_kind that is no text: 3"),
        ({"reward": 1, "reward_components": [1]}, "reward_components that are no dict"),
        ({"reward": 1, "reward_components": {"a": math.nan}}, "nan as the component 'a'"),
        ({"reward": 1, "reward_components": {"a": "much"}}, "'much' as the component 'a'"),
        ({"reward": 1, "response": {}}, "a field 'response', which is taken"),
        ({"reward": 1, "_ng_failure_class": "x"}, "which is taken"),
        ({"reward": 1, "frame": object()}, "fields that are not JSON"),
        ({"reward": 1, 3: 4}, "whose name is no text: 3"),
    ],
)
def test_what_is_no_verdict_is_told_in_half_a_sentence(value: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^gave .*{told}"):
        Verdict.of(value)


@pytest.mark.parametrize("name", ["reward_raw", "format_reward", "letters", "masked_letters", "kind_of_word"])
def test_a_field_of_ones_own_may_hold_such_a_word(name: str) -> None:
    assert Verdict.of({"reward": 1, name: 2}).fields()[name] == 2


@given(
    st.one_of(st.none(), st.text(), st.floats(), st.dictionaries(st.text(), st.floats() | st.text() | st.booleans()))
)
def test_whatever_is_returned_gives_a_finite_reward_or_a_sentence(value: Any) -> None:
    try:
        fields = Verdict.of(value).fields()
    except (TypeError, ValueError) as error:
        assert str(error).startswith("gave ")
    else:
        assert math.isfinite(fields["reward"])


def test_a_failed_judge_makes_a_row_of_the_failures_file_that_can_be_a_task_again() -> None:
    body = {"responses_create_params": {"input": "hi"}, "response": {}, "word": "listen", "_ng_rollout_id": "0-0"}
    row = judge_failed({**body, "instance_config": {"a": 1}}, RuntimeError("x" * 5000))
    assert sink(row) == "failures"
    assert (row["reward"], row["mask_sample"], row["failure_kind"]) == (0.0, True, "judge_failed")
    assert row["instance_config"] == {"a": 1, "mask_sample": True}
    assert row["word"] == "listen"
    assert len(row["failure_reason"]) == 2000
    assert row["_ng_failure_judge_error"] == row["failure_reason"]
    assert "_ng_rollout_id" not in row
    assert judge_failed({**body, "instance_config": None}, RuntimeError())["instance_config"] == {"mask_sample": True}
