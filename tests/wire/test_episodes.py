from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gymkit.wire.episodes import EpisodeFailure, EpisodeRequest, EpisodeResponse
from gymkit.wire.problems import sentences

IDS: dict[str, Any] = {
    "episode_id": {"rollout_id": "0-0", "attempt": 1},
    "task_id": {"taskset": "counter", "task_id": "7"},
}


def test_a_request_names_the_attempt_and_carries_the_task() -> None:
    data = {"episode_id": IDS["episode_id"], "task": {"task_id": IDS["task_id"], "task_input": {"x": [1]}}}
    request = EpisodeRequest.model_validate(data)
    assert request.episode_id.capture_key == "0-0-a1"
    assert request.model_dump() == data


def test_a_result_is_sent_with_a_null_failure() -> None:
    sent = EpisodeResponse.model_validate({**IDS, "result": {"reward": 0.0}}).model_dump(mode="json")
    assert sent == {**IDS, "result": {"reward": 0.0}, "failure": None}


def test_a_failure_is_sent_with_a_null_result_and_without_what_is_unknown() -> None:
    failure = EpisodeFailure(failure_reason="Episode timed out", terminal=False)
    sent = EpisodeResponse.model_validate({**IDS, "failure": failure}).model_dump(mode="json")
    assert sent == {**IDS, "result": None, "failure": {"failure_reason": "Episode timed out", "terminal": False}}


def test_a_failure_s_kind_is_kept_whatever_it_is() -> None:
    data = {"failure_reason": "", "terminal": True, "failure_kind": "Not Registered!", "stage": "cleanup"}
    assert EpisodeFailure.model_validate(data).model_dump() == data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({**IDS}, "the whole: exactly one of result and failure must be set"),
        (
            {**IDS, "result": {}, "failure": {"failure_reason": "x", "terminal": True}},
            "the whole: exactly one of result and failure must be set",
        ),
        ({**IDS, "failure": {"failure_reason": "x"}}, "failure.terminal: is missing"),
        (
            {**IDS, "failure": {"failure_reason": "x" * 2001, "terminal": True}},
            "failure.failure_reason: must have at most 2000 characters",
        ),
        (
            {**IDS, "failure": {"failure_reason": "x", "terminal": True, "stage": "verify"}},
            "failure.stage: must be 'admission', 'seed', 'agent', 'verification' or 'cleanup', not 'verify'",
        ),
        ({**IDS, "result": {}, "note": 1}, "note: is not a field of this object"),
    ],
)
def test_a_response_that_is_refused(data: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as raised:
        EpisodeResponse.model_validate(data)
    assert sentences(raised.value, data) == [problem]
