from __future__ import annotations

import re
from typing import Any

import pytest

from gymkit.collect.reply import failure_of, request_of, row_of
from gymkit.errors import BadStatus, CallTimeout, InvalidReply, NotJson, Redirected, ServerError
from gymkit.servers.route import Reply
from gymkit.wire import codec
from gymkit.wire.episodes import EpisodeRequest
from tests.collect.world import task

FLAT = task(answer=4, _ng_task_index=3, _ng_rollout_index=1, gymkit={"run": "r"})
NAMED: dict[str, Any] = {
    "task_id": {"taskset": "t", "task_id": "7"},
    "task_input": {"answer": 4},
    "_ng_task_index": 3,
    "_ng_rollout_index": 1,
    "_ng_attempt_index": 2,
}
EPISODE = {"rollout_id": "3-1", "attempt": 2}


def reply(status: int, body: Any, *headers: tuple[bytes, bytes]) -> Reply:
    data = body if isinstance(body, bytes) else codec.dumps(body)
    return Reply("environment", "http://here/run", status, list(headers), data)


def episode(**parts: Any) -> Reply:
    return reply(200, {"episode_id": EPISODE, "task_id": NAMED["task_id"], "result": None, "failure": None, **parts})


def refusal(row: dict[str, Any], answer: Reply) -> ServerError:
    with pytest.raises(ServerError) as caught:
        row_of(row, answer)
    return caught.value


def test_a_flat_row_is_sent_with_its_index_and_without_our_notes() -> None:
    sent = codec.loads(request_of(FLAT))
    assert sent == {key: value for key, value in FLAT.items() if key != "gymkit"}


def test_a_materialized_row_is_sent_as_an_episode() -> None:
    sent = codec.loads(request_of(NAMED))
    request = EpisodeRequest.model_validate(sent)
    assert request.episode_id.capture_key == "3-1-a2"
    assert sent["task"] == {"task_id": NAMED["task_id"], "task_input": {"answer": 4}}
    named = codec.loads(request_of({**NAMED, "_ng_rollout_id": "mine"}))
    assert named["episode_id"]["rollout_id"] == "mine"


def test_a_verify_reply_is_kept_as_it_came() -> None:
    body = {"reward": 0.0, "response": {"id": "x"}, "extra": [1]}
    assert row_of(FLAT, reply(200, body)) == body


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (reply(200, b"<html>"), NotJson),
        (reply(200, [1]), InvalidReply),
        (reply(200, {"reward": "1.0"}), InvalidReply),
        (reply(200, {"reward": True}), InvalidReply),
        (reply(200, b'{"reward": NaN}'), NotJson),
        (reply(500, {"reward": 1.0}), BadStatus),
        (reply(307, b"", (b"location", b"http://there")), Redirected),
    ],
)
def test_what_is_no_row_is_refused(answer: Reply, error: type[ServerError]) -> None:
    assert type(refusal(FLAT, answer)) is error


def test_an_episode_result_is_flattened() -> None:
    row = row_of(NAMED, episode(result={"reward": 0.5, "response": {}}))
    assert row == {"reward": 0.5, "response": {}, "_ng_task_id": NAMED["task_id"]}


def test_an_episode_failure_is_a_failure_row() -> None:
    failure = {"failure_reason": "no slot", "terminal": False, "stage": "admission", "failure_kind": "session_lost"}
    assert row_of(NAMED, episode(failure=failure)) == {
        **NAMED,
        "_ng_task_id": NAMED["task_id"],
        "_ng_failure_class": "environment_server_failed",
        "_ng_failure_terminal": False,
        "_ng_failure_message": "no slot",
        "_ng_failure_stage": "admission",
        "failure_kind": "session_lost",
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (episode(), "exactly one of result and failure"),
        (episode(result={"reward": 1.0}, more=1), "more"),
        (episode(result={"reward": 1.0, "_ng_task_index": 0, "ng_perf": {}}), "_ng_task_index.*ng_perf"),
        (episode(result={"reward": 1.0}, episode_id={"rollout_id": "0-0"}), "answered for the episode '0-0'"),
        (episode(result={"reward": "high"}), "a reward that is no number"),
    ],
)
def test_an_episode_reply_of_the_wrong_shape_is_refused(answer: Reply, message: str) -> None:
    error = refusal(NAMED, answer)
    assert isinstance(error, InvalidReply)
    assert re.search(message, str(error))


@pytest.mark.parametrize(
    ("answer", "label", "kind"),
    [
        (reply(500, {"detail": "x", "kind": "verify"}), "agent_run_error", "verify"),
        (reply(500, b'"KeyError"'), "agent_run_error", "http_status"),
        (reply(500, {"kind": 5}), "agent_run_error", "http_status"),
        (reply(422, {"detail": []}), "agent_run_error", "http_status"),
        (reply(301, b""), "agent_run_error", "redirect"),
        (reply(200, b"<html>"), "agent_run_error", "not_json"),
        (reply(200, {"reward": "1"}), "agent_run_error", "invalid_response"),
        *[(reply(status, b""), "agent_request_failed", "http_status") for status in (429, 502, 503, 504)],
    ],
)
def test_a_failed_reply_is_classified(answer: Reply, label: str, kind: str) -> None:
    error = refusal(FLAT, answer)
    row = failure_of(FLAT, error, answer)
    assert row["_ng_failure_class"] == label
    assert row["failure_kind"] == kind
    assert row["_ng_failure_type"] == type(error).__name__
    assert row["_ng_failure_message"] == str(error)
    assert row["_ng_failure_http_status"] == answer.status
    assert "reward" not in row
    assert "_ng_failure_terminal" not in row


def test_a_failure_row_can_be_a_task_again() -> None:
    row = failure_of(FLAT, CallTimeout("too slow", server="s", url="u"), None)
    assert row["responses_create_params"] == FLAT["responses_create_params"]
    assert row["answer"] == 4
    assert "gymkit" not in row
    assert (row["_ng_failure_class"], row["failure_kind"]) == ("agent_request_failed", "timeout")
    assert "_ng_failure_http_status" not in row


def test_a_long_body_is_cut_and_an_odd_one_is_kept_as_text() -> None:
    answer = reply(500, b"\xff" + b"x" * 5000)
    row = failure_of(FLAT, refusal(FLAT, answer), answer)
    assert row["_ng_failure_response_body"] == "\ufffd" + "x" * 1999 + "…"


def test_an_error_without_words_is_named() -> None:
    row = failure_of(FLAT, AssertionError(), None)
    assert (row["_ng_failure_message"], row["failure_kind"]) == ("AssertionError", "agent_error")
