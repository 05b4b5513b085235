"""The scripted model: whose turn it is in a script, what a reply may be, faults, latency and tokens."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest

from gymkit.errors import ConfigError
from gymkit.models.script import Script
from gymkit.models.scripted import ScriptedModel, ScriptedModelConfig
from gymkit.servers.fault import Fault
from gymkit.testing.agent import answer, call, respond
from gymkit.wire.responses import check_response
from tests.models.doubles import Json, ask


def model(script: Any, **settings: Any) -> ScriptedModel:
    return ScriptedModel("scripted", ScriptedModelConfig(**settings), script=Script(script))


def text(server: ScriptedModel, rollout: str | None = None, content: Any = "x") -> str:
    path = f"/ng-rollout/{rollout}/v1/responses" if rollout else "/v1/responses"
    reply = ask(server, path, {"input": content}).expect_ok().json_object()
    return str(reply["output"][0]["content"][0]["text"])


def test_each_rollout_hears_a_list_from_its_beginning() -> None:
    server = model(["one", "two"])
    assert [text(server, "a"), text(server, "b"), text(server, "a"), text(server, "b")] == ["one", "one", "two", "two"]
    assert [text(server), text(server)] == ["one", "two"]


def test_a_script_at_its_end_is_an_error_that_says_for_whom() -> None:
    server = model(["one"])
    text(server, "a")
    reply = ask(server, "/ng-rollout/a/v1/responses", {"input": "x"})
    assert (reply.status, reply.json_object()["kind"]) == (500, "script_ended")
    assert "rollout a" in reply.text


def test_a_function_sees_the_request_and_may_be_a_coroutine() -> None:
    async def script(params: Json) -> str:
        return f"you said {params['input']}"

    assert text(model(script), content="hi") == "you said hi"
    assert text(model(lambda params: str(len(params["input"]))), content=[{"role": "user", "content": "x"}]) == "1"


def test_a_generator_function_starts_anew_for_each_rollout_and_is_sent_the_requests() -> None:
    def script() -> Generator[str, Json, None]:
        params = yield "first"
        while True:
            params = yield f"after {params['input']}"

    server = model(script)
    assert [text(server, "a"), text(server, "a", "p"), text(server, "b"), text(server, "a", "q")] == [
        "first",
        "after p",
        "first",
        "after q",
    ]


def test_a_generator_is_one_for_all() -> None:
    server = model(str(number) for number in range(3))
    assert [text(server, "a"), text(server, "b"), text(server)] == ["0", "1", "2"]


def test_what_a_reply_may_be() -> None:
    replies = ["text", answer("item"), ["text", call("f")], respond([answer("whole")], status="incomplete", x=1)]
    server = model(replies)
    made = [ask(server, "/v1/responses", {"input": "x"}).expect_ok().json_object() for _ in replies]
    for response in made:
        check_response(response)
    assert [[item["type"] for item in response["output"]] for response in made] == [
        ["message"],
        ["message"],
        ["message", "function_call"],
        ["message"],
    ]
    assert (made[3]["status"], made[3]["x"]) == ("incomplete", 1)
    assert len({response["id"] for response in made[:3]}) == 3


@pytest.mark.parametrize("reply", [7, None, [7], [{"no": "type"}]])
def test_what_a_reply_may_not_be(reply: Any) -> None:
    answered = ask(model([reply]), "/v1/responses", {"input": "x"})
    assert answered.status == 500
    assert "script" in answered.text


@pytest.mark.parametrize("script", [7, "text", None])
def test_what_a_script_may_not_be(script: Any) -> None:
    with pytest.raises(ConfigError, match="a list, a generator or a function"):
        Script(script)


def test_faults_come_on_demand() -> None:
    server = model([Fault(503, b"down", {"Retry-After": "2"}), "up"])
    reply = ask(server, "/v1/responses", {"input": "x"})
    assert (reply.status, (b"retry-after", b"2") in reply.headers) == (503, True)
    assert text(server) == "up"


def test_latency_comes_on_demand() -> None:
    started = time.perf_counter()
    text(model(["x"], seconds=0.05))
    assert time.perf_counter() - started >= 0.05


def test_a_later_prompt_begins_with_an_earlier_one_and_its_reply() -> None:
    server = model([[call("f", "c", n=1)], "done"], token_ids=True)
    first = ask(server, "/v1/responses", {"input": "go", "instructions": "be"}).json_object()
    result = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    history = [{"role": "user", "content": "go"}, *first["output"], result]
    second = ask(server, "/v1/responses", {"input": history, "instructions": "be"}).json_object()
    before, after = first["output"][-1], second["output"][-1]
    seen = before["prompt_token_ids"] + before["generation_token_ids"]
    assert after["prompt_token_ids"][: len(seen)] == seen
    assert bytes(after["generation_token_ids"]).decode() == "<assistant>done\n"
    assert len(after["generation_log_probs"]) == second["usage"]["output_tokens"]


def test_a_script_of_the_settings_is_a_list() -> None:
    server = ScriptedModel("scripted", ScriptedModelConfig(replies=["one", "two"]))
    assert [text(server, "a"), text(server, "a")] == ["one", "two"]


def test_a_reply_that_is_used_again_is_not_written_to() -> None:
    item = answer("same")
    before = repr(item)
    server = model(lambda _: [item], token_ids=True)
    ask(server, "/v1/responses", {"input": "x"})
    assert repr(item) == before
