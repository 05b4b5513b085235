"""The benchmarks' service has to play the real conversation, or the numbers mean nothing."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

import orjson
import pytest

from gymkit.errors import WireError
from gymkit.wire.responses import check_response
from tests.bench.harness import bodies, rows, service
from tests.bench.service import FAULTS, decide


def post(url: str, body: bytes) -> tuple[int, bytes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(f"{url}/v1/responses", body), timeout=10) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_it_asks_for_three_calls_and_then_says_the_count() -> None:
    [row] = rows(1)
    sent = bodies(row)
    with service() as target:
        replies = [orjson.loads(post(target.url, body)[1]) for body in sent]
    kinds = [reply["output"][0]["type"] for reply in replies]
    assert kinds == ["function_call", "function_call", "function_call", "message"]
    assert replies[-1]["output"][0]["content"][0]["text"] == f"The count is {row['expected_count']}."


def test_its_answers_are_valid_responses() -> None:
    for body in bodies(rows(3)[2]):
        check_response(decide(orjson.loads(body)))


def test_the_same_request_gets_the_same_bytes() -> None:
    body = bodies(rows(1)[0])[0]
    with service() as target:
        assert post(target.url, body) == post(target.url, body)


@pytest.mark.parametrize("mode", ["invalid", "partialusage"])
def test_an_invalid_object_is_invalid(mode: str) -> None:
    status, body = FAULTS[mode](first_request(mode))
    assert status == 200
    with pytest.raises(WireError):
        check_response(orjson.loads(body))


def test_flaky_fails_the_second_of_three_conversations() -> None:
    statuses = [FAULTS["flaky"](first_request("flaky"))[0] for _ in range(6)]
    assert statuses == [200, 500, 200, 200, 500, 200]


def test_a_fault_reaches_the_wire() -> None:
    with service() as target:
        assert post(target.url, orjson.dumps(first_request("http500")))[0] == 500
        assert post(target.url, orjson.dumps(first_request("notjson")))[1].startswith(b"<html>")


def first_request(mode: str) -> dict[str, Any]:
    [row] = rows(1, mode)
    params: dict[str, Any] = row["responses_create_params"]
    return params
