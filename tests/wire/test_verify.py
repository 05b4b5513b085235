from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import WireError
from gymkit.wire.verify import VerifyReply, VerifyRequest, check_verify_reply
from tests.wire.builders import answer, response, task


def reply(**more: Any) -> dict[str, Any]:
    return {**task(), "response": response(answer()), "reward": 1.0, **more}


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6))
def test_any_finite_number_is_a_reward(reward: float) -> None:
    check_verify_reply(reply(reward=reward))


@pytest.mark.parametrize(
    ("reward", "reason"),
    [
        (None, "must be a number, not null"),
        (True, "must be a number, not true"),
        ("1.0", "must be a number, not '1.0'"),
        ([1.0], "must be a number, not a list"),
        (float("nan"), "must be a finite number, not nan"),
        (float("inf"), "must be a finite number, not inf"),
    ],
)
def test_what_is_no_reward(reward: Any, reason: str) -> None:
    with pytest.raises(WireError, match=f"the verify reply is invalid: reward: {reason}$"):
        check_verify_reply(reply(reward=reward))
    with pytest.raises(WireError, match=f"reward_components.style: {reason}$"):
        check_verify_reply(reply(reward_components={"style": reward, "fact": 1}))


def test_a_missing_reward_is_not_a_zero() -> None:
    data = reply()
    del data["reward"]
    with pytest.raises(WireError, match="reward: is missing"):
        check_verify_reply(data)


def test_the_response_of_a_reply_is_checked_too() -> None:
    with pytest.raises(WireError, match=r"response\.output\[0\]\.arguments: is missing"):
        check_verify_reply(reply(response=response({"type": "function_call", "call_id": "c", "name": "add"})))


@pytest.mark.parametrize("kind", ["judge_failed", "usersim:scorer_inconclusive", "Some Old Label", None])
def test_an_unknown_failure_kind_is_kept(kind: str | None) -> None:
    data = reply(mask_sample=True, failure_kind=kind, failure_reason="x", reward_components={"a": 1}, length=7)
    check_verify_reply(data)
    assert VerifyReply.model_validate(data).model_dump(exclude_unset=True) == data


def test_a_reply_without_a_mask_is_not_masked() -> None:
    assert VerifyReply.model_validate(reply()).mask_sample is False


@pytest.mark.parametrize("name", ["responses_create_params", "response"])
def test_a_request_needs_the_task_and_the_trajectory(name: str) -> None:
    data = {**task(expected_count=3), "response": response(answer())}
    assert VerifyRequest.model_validate(data).model_dump() == data
    del data[name]
    with pytest.raises(ValueError, match=name):
        VerifyRequest.model_validate(data)
