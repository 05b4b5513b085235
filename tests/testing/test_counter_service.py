"""The service that the demo drives: a real process, valid answers, no state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gymkit.shipped import shipped
from gymkit.testing.counter_service import plan, respond, running
from gymkit.wire import codec
from gymkit.wire.responses import check_response, unpaired_calls


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The service in its process."""
    with running() as url:
        yield url


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def converse(client: httpx.Client, params: dict[str, Any]) -> list[dict[str, Any]]:
    """Play a conversation, every tool answering with its call's number; the items that came."""
    items: list[dict[str, Any]] = []
    for step in range(10):
        reply = client.post("/v1/responses", json={**params, "input": [*params["input"], *items]}).json()
        assert check_response(reply) is not None
        items += reply["output"]
        if not unpaired_calls(reply["output"]):
            return items
        items.append({"type": "function_call_output", "call_id": reply["output"][0]["call_id"], "output": str(step)})
    raise AssertionError("it never finishes")


def test_asks_one_call_a_step_and_then_answers(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False) as client:
        items = converse(client, {"input": [user("add 1 then add -2 then get the count")]})
    asked = [(item["name"], item["arguments"]) for item in items if item["type"] == "function_call"]
    assert asked == [
        ("increment_counter", '{"count": 1}'),
        ("increment_counter", '{"count": -2}'),
        ("get_counter_value", "{}"),
    ]
    assert items[-1]["content"][0]["text"] == "2"


def test_knows_what_to_do_for_every_task_we_ship(url: str) -> None:
    rows = [codec.loads(line) for line in shipped("data/counter.jsonl").read_bytes().splitlines()]
    with httpx.Client(base_url=url, trust_env=False) as client:
        lengths = [len(converse(client, row["responses_create_params"])) for row in rows]
    assert min(lengths) >= 5


def test_plan_reads_the_last_user_message_in_either_form() -> None:
    parts = [{"type": "input_text", "text": "get the count"}]
    assert plan([user("add 5"), user(parts)]) == [("get_counter_value", {})]
    assert plan([]) == []


def test_a_plain_text_input_is_a_user_message() -> None:
    assert respond({"input": "add 3"})["output"][0]["arguments"] == '{"count": 3}'
    assert respond({"input": "hello"})["output"][0]["type"] == "message"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/response", b"{}", 404),
        ("/v1/responses", b"not json", 400),
        ("/v1/responses", b"{}", 400),
        ("/v1/responses", b"[]", 400),
    ],
)
def test_what_it_cannot_answer_gets_a_reason(url: str, path: str, body: bytes, status: int) -> None:
    reply = httpx.post(url + path, content=body, trust_env=False)
    assert reply.status_code == status
    assert reply.json()["error"]


def test_the_process_ends_with_the_block() -> None:
    with running() as url:
        assert httpx.post(f"{url}/v1/responses", json={"input": "x"}, trust_env=False).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.post(f"{url}/v1/responses", json={"input": "x"}, trust_env=False)
