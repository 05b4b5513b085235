"""A model server over its routes: the client libraries of both providers talk to it for real, streaming and not."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from gymkit.models.script import Script
from gymkit.models.scripted import ScriptedModel, ScriptedModelConfig
from gymkit.servers.capture import MemoryCapture
from gymkit.servers.fault import Fault
from gymkit.servers.hosting import Hosted, serve
from gymkit.servers.route import Reply, Route
from gymkit.testing.agent import answer, call
from gymkit.wire import codec

Json = dict[str, Any]

THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "two calls"}],
    "encrypted_content": "sig",
}
TURN = [THOUGHT, answer("I call."), call("add", "call_a", n=1), call("add", "call_b", n=2)]
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}
TOOL = {"type": "function", "name": "add", "parameters": {"type": "object", "properties": {}}, "strict": True}
CHAT_TOOL = {"type": "function", "function": {"name": "add", "parameters": {}}}
HELLO = [{"role": "user", "content": "hello"}]


def model(script: Any, *, capture: MemoryCapture | None = None, **settings: Any) -> ScriptedModel:
    return ScriptedModel("policy", ScriptedModelConfig(**settings), script=Script(script), capture=capture)


def always(reply: Any) -> Callable[[Json], Any]:
    return lambda _: reply


def turn(_: Json) -> Json:
    return {"output": TURN, "usage": USAGE}


@pytest.fixture
def capture() -> MemoryCapture:
    return MemoryCapture()


@pytest.fixture
def hosted(capture: MemoryCapture) -> Iterator[Hosted]:
    with serve(model(turn, capture=capture)) as hosted:
        yield hosted


@pytest.fixture
def openai_client(hosted: Hosted) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{hosted.url}/ng-rollout/r1/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def anthropic_client(hosted: Hosted) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=f"{hosted.url}/ng-rollout/r1", api_key="none", max_retries=0) as client:
        yield client


def post(server: ScriptedModel, path: str, body: Any, **options: Any) -> Reply:
    return asyncio.run(Route.to_app(server.name, server).post(path, body, **options))


def events(reply: Reply) -> list[Json]:
    lines = [line for line in reply.body.split(b"\n") if line.startswith(b"data: {")]
    return [codec.loads(line.removeprefix(b"data: ")) for line in lines]


def test_openai_client_reads_a_response(openai_client: openai.OpenAI) -> None:
    response = openai_client.responses.create(model="any", input="hello", tools=[TOOL])
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert response.output_text == "I call."
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.input_tokens_details.cached_tokens) == (10, 4)
    assert [tool.name for tool in response.tools] == ["add"]


def test_openai_client_streams_a_response(openai_client: openai.OpenAI) -> None:
    with openai_client.responses.stream(model="any", input="hello") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds == ["response.created", *["response.output_item.done"] * 4, "response.completed"]
    assert final.output_text == "I call."
    assert [item.call_id for item in final.output if item.type == "function_call"] == ["call_a", "call_b"]


def test_openai_client_reads_a_chat_completion(openai_client: openai.OpenAI) -> None:
    completion = openai_client.chat.completions.create(model="any", messages=HELLO, tools=[CHAT_TOOL])
    [choice] = completion.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I call.")
    assert choice.message.reasoning_content == "two calls"
    assert [each.id for each in choice.message.tool_calls or ()] == ["call_a", "call_b"]
    assert completion.usage is not None
    assert completion.usage.total_tokens == 15


def test_openai_client_streams_a_chat_completion(openai_client: openai.OpenAI) -> None:
    options: Any = {"stream_options": {"include_usage": True}}
    with openai_client.chat.completions.stream(model="any", messages=HELLO, **options) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert (message.content, final.choices[0].finish_reason) == ("I call.", "tool_calls")
    assert [(each.id, each.function.arguments) for each in message.tool_calls or ()] == [
        ("call_a", '{"n":1}'),
        ("call_b", '{"n":2}'),
    ]
    assert final.usage is not None
    assert final.usage.completion_tokens == 5


def test_anthropic_client_reads_and_streams_the_same_message(anthropic_client: anthropic.Anthropic) -> None:
    asked: Any = {"model": "any", "max_tokens": 9, "messages": HELLO}
    whole = anthropic_client.messages.create(**asked)
    with anthropic_client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for message in (whole, streamed):
        thought, text, first, second = message.content
        assert (thought.thinking, thought.signature) == ("two calls", "sig")
        assert text.text == "I call."
        assert [first.input, second.input] == [{"n": 1}, {"n": 2}]
        assert message.stop_reason == "tool_use"
        assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (6, 4)
        assert message.usage.output_tokens == 5


def test_client_libraries_raise_the_error_that_belongs_to_the_status(capture: MemoryCapture) -> None:
    with serve(model(always(Fault(429, b"slow down")), capture=capture)) as hosted:
        with openai.OpenAI(base_url=f"{hosted.url}/v1", api_key="none", max_retries=0) as client:
            with pytest.raises(openai.RateLimitError, match="slow down"):
                client.responses.create(model="any", input="hello")
            with pytest.raises(openai.RateLimitError, match="slow down"):  # within the patience: still a status
                client.chat.completions.create(model="any", messages=HELLO, stream=True)
        with (
            anthropic.Anthropic(base_url=hosted.url, api_key="none", max_retries=0) as claude,
            pytest.raises(anthropic.RateLimitError, match="slow down"),
        ):
            claude.messages.create(model="any", max_tokens=9, messages=HELLO)


@pytest.mark.parametrize("prefix", ["", "/ng-rollout/r-1.a", "/ng-rollout/r-1.a/training-token-capture"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "hello"}),
        ("/v1/chat/completions", {"messages": HELLO}),
        ("/v1/messages", {"messages": HELLO, "max_tokens": 9}),
    ],
)
def test_every_dialect_is_served_under_every_prefix_with_a_cookie(prefix: str, path: str, body: Json) -> None:
    reply = post(model(turn), prefix + path, body).expect_ok()
    assert "ScriptedModel___policy" in reply.cookies()


def test_a_cookie_is_kept_when_it_is_ours_and_replaced_when_it_is_not() -> None:
    server = model(turn)
    first = post(server, "/v1/responses", {"input": "x"}).cookies()["ScriptedModel___policy"]
    assert first is not None
    again = post(server, "/v1/responses", {"input": "x"}, cookies={"ScriptedModel___policy": first})
    assert again.cookies()["ScriptedModel___policy"] == first
    for forged in (first[:-1] + ("0" if first[-1] != "0" else "1"), "", "no-dot", "ä.ü"):
        other = post(server, "/v1/responses", {"input": "x"}, cookies={"ScriptedModel___policy": forged})
        assert other.cookies()["ScriptedModel___policy"] not in (forged, first)


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/v1/responses", {"input": "x", "max_tokens": 3}, "max_tokens"),
        ("/v1/responses", {"inputs": "x"}, "input"),
        ("/v1/chat/completions", {"messages": HELLO, "functions": []}, "functions"),
        ("/v1/chat/completions", {"messages": HELLO, "stream": "yes"}, "stream"),
        ("/v1/chat/completions", {"messages": [{"role": "robot", "content": "x"}]}, "messages[0]"),
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "server_tool_use"}]}]}, "server_tool_use"),
    ],
)
def test_a_request_that_does_not_stream_is_held_to_the_letter(path: str, body: Json, named: str) -> None:
    reply = post(model(turn), path, body)
    assert reply.status == 422
    error = reply.json_object()
    assert named in str(error["detail"])
    assert named in error["error"]["message"]


def test_a_body_that_is_no_json_object_is_refused() -> None:
    for body in (b"{", b"[]", b'"x"'):
        assert post(model(turn), "/v1/responses", body).status == 422


def test_what_a_streaming_client_sends_too_much_is_taken_off_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Json] = []
    server = model(lambda params: seen.append(params) or [call("search__find", q="x")])
    group = {"type": "namespace", "name": "search", "description": "d", "tools": [{**TOOL, "name": "find"}]}
    body = {
        "stream": True,
        "client_metadata": {"x": 1},
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be brief"}]},
            {"type": "message", "role": "user", "content": "hello"},
            {"type": "from_the_future", "id": "f"},
            {"type": "function_call", "call_id": "c", "name": "find", "namespace": "search", "arguments": "{}"},
        ],
        "tools": [group, {"type": "telepathy"}],
        "instructions": "be kind",
    }
    with caplog.at_level(logging.WARNING, "gymkit"):
        reply = post(server, "/v1/responses", body)
        post(server, "/v1/responses", body)
    [params, _] = seen
    assert params["instructions"] == "be kind\nbe brief"
    assert [tool["name"] for tool in params["tools"]] == ["search__find"]
    assert [item.get("name") for item in params["input"]] == [None, "search__find"]
    done = next(event for event in events(reply) if event["type"] == "response.output_item.done")
    assert (done["item"]["namespace"], done["item"]["name"]) == ("search", "find")
    logged = sorted(record.getMessage().split(" lost ")[1].split(":")[0] for record in caplog.records)
    assert logged == ["client_metadata", "input[]", "tools[]"]  # once a kind, not once a call


def test_the_order_of_a_chat_stream() -> None:
    server = model(always([THOUGHT, answer("text"), call("f", "c")]))
    reply = post(server, "/v1/chat/completions", {"messages": HELLO, "stream": True})
    deltas = [chunk["choices"][0]["delta"] for chunk in events(reply)]
    assert [next(iter(delta), None) for delta in deltas] == ["role", "reasoning_content", "content", "tool_calls", None]
    assert events(reply)[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert reply.body.endswith(b"data: [DONE]\n\n")


def test_the_events_of_a_messages_stream() -> None:
    reply = post(model(turn), "/v1/messages", {"messages": HELLO, "max_tokens": 9, "stream": True})
    names = [line[7:] for line in reply.text.split("\n") if line.startswith("event: ")]
    assert names[:4] == ["message_start", "content_block_start", "content_block_delta", "content_block_delta"]
    assert names[-2:] == ["message_delta", "message_stop"]
    deltas = [event["delta"]["type"] for event in events(reply) if event["type"] == "content_block_delta"]
    assert deltas == ["thinking_delta", "signature_delta", "text_delta", "input_json_delta", "input_json_delta"]


class Impatient(ScriptedModel):
    patience = 0.01
    heartbeat = 0.01


@pytest.mark.parametrize(
    ("path", "body", "last"),
    [
        ("/v1/responses", {"input": "x"}, "response.failed"),
        ("/v1/chat/completions", {"messages": HELLO}, "error"),
        ("/v1/messages", {"messages": HELLO, "max_tokens": 9}, "error"),
    ],
)
def test_a_late_failure_ends_the_open_stream(path: str, body: Json, last: str) -> None:
    fault = Fault(503, b"gone", seconds=0.1)
    server = Impatient("policy", ScriptedModelConfig(), script=Script(always(fault)), capture=MemoryCapture())
    reply = post(server, f"/ng-rollout/r1{path}", {**body, "stream": True})
    assert reply.status == 200
    assert reply.body.count(b": keep-alive") >= 2
    assert f"event: {last}\n" in reply.text
    assert "gone" in reply.text
    assert server.capture is not None
    [record] = server.capture.read("r1").calls
    assert (record["status_code"], record["error_category"]) == (503, "upstream_error")


def test_the_keep_alive_of_a_slow_stream_does_not_disturb_its_client() -> None:
    with (
        serve(Impatient("policy", ScriptedModelConfig(seconds=0.1), script=Script(turn))) as hosted,
        openai.OpenAI(base_url=f"{hosted.url}/v1", api_key="none", max_retries=0) as client,
    ):
        events_seen = list(client.responses.create(model="any", input="x", stream=True))
    assert events_seen[-1].type == "response.completed"


def test_a_failed_response_is_an_error_in_the_other_dialects_and_itself_in_its_own() -> None:
    failed = {"output": [], "status": "failed", "error": {"code": "server_error", "message": "no luck"}}
    server = model(always(failed))
    assert post(server, "/v1/responses", {"input": "x"}).json_object()["status"] == "failed"
    reply = post(server, "/v1/chat/completions", {"messages": HELLO})
    assert reply.status == 502
    assert "no luck" in reply.text


def test_a_crash_in_a_script_is_a_500_that_names_it(caplog: pytest.LogCaptureFixture, capture: MemoryCapture) -> None:
    reply = post(model(lambda _: 1 / 0, capture=capture), "/ng-rollout/r1/v1/responses", {"input": "x"})
    assert reply.status == 500
    assert "ZeroDivisionError" in reply.json_object()["error"]["message"]
    assert "ZeroDivisionError" in caplog.text
    assert capture.read("r1").calls[0]["error_category"] == "exception"


def test_a_record_holds_what_crossed_the_wire(openai_client: openai.OpenAI, capture: MemoryCapture) -> None:
    response = openai_client.responses.create(model="any", input="hello", extra_headers={"x-session-id": "agent-7"})
    [record] = capture.read("r1").calls
    assert record["request"] == {"model": "any", "input": "hello"}
    assert record["response"]["id"] == response.id
    assert record["model_ref"] == {"type": "responses_api_models", "name": "policy"}
    assert (record["dialect"], record["status_code"], record["error_category"]) == ("responses", 200, None)
    assert (record["upstream_attempted"], record["response_source"]) == (True, "upstream")
    assert record["client_session_id"] == "agent-7"
    assert record["completed_at"] >= record["started_at"]
    assert record["latency_ttft_ms"] is None


def test_a_streams_record_is_the_whole_reply(anthropic_client: anthropic.Anthropic, capture: MemoryCapture) -> None:
    with anthropic_client.messages.stream(model="any", max_tokens=9, messages=HELLO) as stream:
        final = stream.get_final_message()
    [record] = capture.read("r1").calls
    assert record["response"]["id"] == final.id
    assert [block["type"] for block in record["response"]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert record["latency_ttft_ms"] == record["latency_ms"]


def test_calls_outside_a_rollout_are_not_recorded(capture: MemoryCapture) -> None:
    post(model(turn, capture=capture), "/v1/responses", {"input": "x"})
    assert repr(capture) == "<MemoryCapture 0 rollouts, 0 bytes>"


def test_refused_and_unreadable_requests_are_recorded(capture: MemoryCapture) -> None:
    server = model(turn, capture=capture)
    post(server, "/ng-rollout/r1/v1/responses", {"bogus": 1})
    post(server, "/ng-rollout/r1/v1/responses", b"{broken")
    first, second = capture.read("r1").calls
    assert (first["status_code"], first["error_category"], first["upstream_attempted"]) == (422, "client_error", False)
    assert (second["request"], second["request_raw"]) == (None, "{broken")


def test_the_record_is_there_before_the_reply(capture: MemoryCapture) -> None:
    server = model(turn, capture=capture)
    found: list[int] = []

    async def send(message: Any) -> None:
        found.append(len(capture.read("r1").calls))

    async def scenario() -> None:
        body = codec.dumps({"input": "x", "stream": True})
        messages = iter([{"type": "http.request", "body": body}])

        async def receive() -> Any:
            return next(messages)

        scope = {"type": "http", "method": "POST", "path": "/ng-rollout/r1/v1/responses", "headers": []}
        await server(scope, receive, send)

    asyncio.run(scenario())
    assert len(found) > 1
    assert set(found[1:]) == {1}  # headers of a stream may go first, no byte of the reply does


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_whose_client_is_gone_is_recorded_as_cancelled(capture: MemoryCapture, stream: bool) -> None:
    async def scenario() -> None:
        asked = asyncio.Event()

        async def script(_: Json) -> str:
            asked.set()
            await asyncio.Event().wait()
            return "never"

        route = Route.to_app("policy", model(script, capture=capture))
        body = {"input": "x", "stream": stream}
        call = asyncio.create_task(route.post("/ng-rollout/r1/v1/responses", body))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
    [record] = capture.read("r1").calls
    assert (record["error_category"], record["status_code"], record["response"]) == ("cancelled", None, None)


@pytest.mark.parametrize("stream", [b"false", b"true"])
def test_a_client_that_hangs_up_ends_its_call(capture: MemoryCapture, stream: bytes) -> None:
    asked, ended = threading.Event(), threading.Event()

    async def script(_: Json) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    server = Impatient("policy", ScriptedModelConfig(), script=Script(script), capture=capture)
    with serve(server) as hosted:
        body = b'{"input":"x","stream":%s}' % stream
        with socket.create_connection(("127.0.0.1", hosted.port)) as client:
            head = b"POST /ng-rollout/r1/v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
            client.sendall(head % len(body) + body)
            assert asked.wait(10)
        assert ended.wait(10)
        assert httpx.post(f"{hosted.url}/v1/responses", json={"inputs": "x"}).status_code == 422  # still alive
    [record] = capture.read("r1").calls
    assert record["error_category"] == "cancelled"


def test_a_kept_connection_serves_call_after_call(hosted: Hosted) -> None:
    with httpx.Client() as client:
        for _ in range(20):
            assert client.post(f"{hosted.url}/v1/responses", json={"input": "x"}).status_code == 200
            streamed = client.post(f"{hosted.url}/v1/responses", json={"input": "x", "stream": True})
            assert b"response.completed" in streamed.content


def test_token_ids_stand_on_the_last_item_of_a_reply_and_on_a_chat_message() -> None:
    server = model(turn, token_ids=True)
    output = post(server, "/v1/responses", {"input": "x"}).json_object()["output"]
    assert [len(item.get("generation_token_ids", ())) > 0 for item in output] == [False, False, False, True]
    assert len(output[-1]["generation_token_ids"]) == len(output[-1]["generation_log_probs"])
    message = post(server, "/v1/chat/completions", {"messages": HELLO}).json_object()["choices"][0]["message"]
    assert message["generation_token_ids"] == output[-1]["generation_token_ids"]


def test_under_the_training_segment_token_ids_are_in_the_record_and_not_in_the_reply(capture: MemoryCapture) -> None:
    server = model(turn, capture=capture)
    paths = {"/v1/responses": {"input": "x"}, "/v1/messages": {"messages": HELLO, "max_tokens": 9}}
    for path, body in paths.items():
        reply = post(server, f"/ng-rollout/r1/training-token-capture{path}", body)
        assert b"token_ids" not in reply.body
    assert [len(record["tokens"]["generation_token_ids"]) > 0 for record in capture.read("r1").calls] == [True, True]
    post(server, "/ng-rollout/r2/v1/responses", {"input": "x"})
    assert "tokens" not in capture.read("r2").calls[0]


def test_messages_has_no_place_for_token_ids_so_the_record_keeps_them(capture: MemoryCapture) -> None:
    server = model(turn, capture=capture, token_ids=True)
    reply = post(server, "/ng-rollout/r1/v1/messages", {"messages": HELLO, "max_tokens": 9})
    assert b"token_ids" not in reply.body
    assert capture.read("r1").calls[0]["tokens"]["prompt_token_ids"]


def test_an_unknown_usage_is_zero_for_messages_and_unknown_in_the_record(capture: MemoryCapture) -> None:
    server = model(always("hi"), capture=capture)
    reply = post(server, "/ng-rollout/r1/v1/messages", {"messages": HELLO, "max_tokens": 9})
    assert reply.json_object()["usage"] == {"input_tokens": 0, "output_tokens": 0}
    [record] = capture.read("r1").calls
    assert record["response"]["usage"] is None
    assert {"path": "usage", "reason": record["dropped"][0]["reason"]} in record["dropped"]


def test_there_are_health_routes_and_no_others() -> None:
    async def scenario() -> tuple[int, int]:
        route = Route.to_app("policy", model(turn))
        return (await route.get("/", timeout=5)).status, (await route.get("/v1/models", timeout=5)).status

    assert asyncio.run(scenario()) == (200, 404)
