"""A model server under many calls at once, and with odd ones: nothing leaks, nothing is mixed up, nothing is lost."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymkit.models.script import Script
from gymkit.models.scripted import ScriptedModel, ScriptedModelConfig
from gymkit.servers.capture import MemoryCapture
from gymkit.servers.hosting import serve
from gymkit.servers.route import Route
from gymkit.testing.agent import answer, call
from gymkit.wire import codec

Json = dict[str, Any]
PATHS = {
    "responses": ("/v1/responses", lambda text: {"input": text}),
    "chat": ("/v1/chat/completions", lambda text: {"messages": [{"role": "user", "content": text}]}),
    "messages": ("/v1/messages", lambda text: {"messages": [{"role": "user", "content": text}], "max_tokens": 9}),
}
ODD = 'line\u2028separator \u0085 nul \x00 quote " backslash \\ emoji 🦜 rtl \u202e </script> data: x\n\nevent: y'


def echo(params: Json) -> list[Json]:
    content = params["input"]
    if not isinstance(content, str):
        content = content[-1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return [answer(text), call("echo", text=text)]


def model(script: Any, capture: MemoryCapture | None = None) -> ScriptedModel:
    return ScriptedModel("policy", ScriptedModelConfig(), script=Script(script), capture=capture)


def test_two_hundred_calls_that_are_killed_at_random_leave_a_record_each_and_nothing_else() -> None:
    capture = MemoryCapture()
    chance = random.Random(7)

    async def script(_: Json) -> str:
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
        return "done"

    async def one(route: Route, number: int, dialect: str, stream: bool) -> None:
        path, body = PATHS[dialect]
        payload = {**body("x"), "stream": stream}
        sent = asyncio.create_task(route.post(f"/ng-rollout/r{number}{path}", payload))
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        sent.cancel()
        await asyncio.wait([sent])

    async def scenario() -> None:
        route = Route.to_app("policy", model(script, capture))
        kinds = [(dialect, stream) for dialect in PATHS for stream in (False, True)]
        await asyncio.gather(*(one(route, number, *kinds[number % 6]) for number in range(200)))
        for _ in range(20):  # a cancelled task ends in the loop's next rounds
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
    found = [capture.read(f"r{number}").calls for number in range(200)]
    assert all(len(calls) <= 1 for calls in found)
    categories = {calls[0]["error_category"] for calls in found if calls}
    assert categories == {None, "cancelled"}


def test_calls_at_once_are_not_mixed_up() -> None:
    async def scenario() -> None:
        capture = MemoryCapture()
        route = Route.to_app("policy", model(echo, capture))

        async def one(number: int) -> None:
            path, body = PATHS[list(PATHS)[number % 3]]
            reply = await route.post(f"/ng-rollout/r{number}{path}", body(f"number {number}."))
            assert f"number {number}." in reply.text
            [record] = capture.drain(f"r{number}").calls
            assert f"number {number}." in str(record["request"])
            assert record["response"]["id"] == reply.json_object()["id"]

        await asyncio.gather(*map(one, range(300)))

    asyncio.run(scenario())


@pytest.mark.parametrize("text", [ODD, "x" * 2_000_000, "\ud800 alone"], ids=["odd", "two megabytes", "surrogate"])
def test_odd_text_goes_through_every_dialect_streaming_and_not(text: str) -> None:
    async def scenario() -> None:
        route = Route.to_app("policy", model(echo))
        for path, body in PATHS.values():
            whole = (await route.post(path, body(text))).expect_ok()
            streamed = (await route.post(path, {**body(text), "stream": True})).expect_ok()
            assert text in _texts(whole.json())
            assert b"event: y\n" not in streamed.body  # an event's data stays on its line

    asyncio.run(scenario())


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return [value] if isinstance(value, str) else []


def test_odd_text_comes_out_of_the_client_libraries_streams() -> None:
    with serve(model(echo)) as hosted:
        with openai.OpenAI(base_url=f"{hosted.url}/v1", api_key="none", max_retries=0) as client:
            with client.responses.stream(model="any", input=ODD) as stream:
                assert stream.get_final_response().output_text == ODD
            asked: Any = {"model": "any", "messages": [{"role": "user", "content": ODD}]}
            with client.chat.completions.stream(**asked) as chat:
                assert chat.get_final_completion().choices[0].message.content == ODD
        with anthropic.Anthropic(base_url=hosted.url, api_key="none", max_retries=0) as claude:
            with claude.messages.stream(**asked, max_tokens=9) as message:
                final = message.get_final_message()
            assert final.content[0].text == ODD
            assert final.content[1].input == {"text": ODD}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=4))
def test_a_stream_tells_the_same_as_a_whole_reply(texts: list[str]) -> None:
    async def scenario() -> None:
        server = model(lambda _: {"id": "resp_1", "created_at": 1.0, "output": [answer(text) for text in texts]})
        route = Route.to_app("policy", server)
        path, body = PATHS["responses"]
        whole = (await route.post(path, body("x"))).json_object()
        streamed = (await route.post(path, {**body("x"), "stream": True})).text
        last = [line for line in streamed.split("\n") if line.startswith("data: ")][-1]
        assert whole["output"] == codec.loads(last[6:].encode())["response"]["output"]

    asyncio.run(scenario())
