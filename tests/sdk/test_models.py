"""``gk.Model``: a model by its address, by what it says, or on this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

import gymkit
from gymkit.environments.single_agent_turn import SingleAgentTurn
from gymkit.errors import BadStatus, ConfigError, MissingExtra
from gymkit.servers.capture import MemoryCapture
from gymkit.servers.hosting import serve
from gymkit.testing.agent import Fault, ScriptedAgent, answer, respond
from gymkit.wire import codec

SECRET = "sk-very-secret-key"


def completion(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def test_ask_returns_the_text_of_the_answer() -> None:
    service = ScriptedAgent(lambda _: completion("hello"))
    with serve(service) as hosted:
        model = gymkit.Model(f"{hosted.url}/v1", "small", api_key=SECRET, extra_body={"top_k": 1})
        assert model.ask("hi", instructions="be kind", max_output_tokens=5) == "hello"
        assert asyncio.run(model.aask("hi")) == "hello"
    sent = service.received[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {SECRET}"
    assert (sent.params["model"], sent.params["top_k"], sent.params["max_tokens"]) == ("small", 1, 5)


def test_a_model_may_be_asked_over_the_responses_api() -> None:
    service = ScriptedAgent(lambda _: respond([answer("hello")]))
    with serve(service) as hosted:
        model = gymkit.Model(f"{hosted.url}/v1", "large", api="responses")
        assert model.ask("hi") == "hello"
    assert service.received[0].path == "/v1/responses"
    assert "authorization" not in service.received[0].headers


def test_what_the_service_said_is_the_error() -> None:
    fault = Fault(401, codec.dumps({"error": {"message": f"{SECRET} is no key of ours"}}))
    with serve(ScriptedAgent(lambda _: fault)) as hosted:
        model = gymkit.Model(f"{hosted.url}/v1", "small", api_key=SECRET)
        with pytest.raises(BadStatus, match="is no key of ours") as raised:
            model.ask("hi")
    assert raised.value.status == 401
    assert SECRET not in str(raised.value)


def test_a_key_is_nowhere_to_be_seen() -> None:
    model = gymkit.Model("http://127.0.0.1:1/v1", "small", api_key=SECRET)
    server = model.server()
    shown = f"{model!r} {model.settings()} {model.config!r} {server!r} {vars(server)!r}"
    assert SECRET not in shown
    assert repr(model) == "<Model small http://127.0.0.1:1/v1>"


def test_settings_are_what_results_depend_on() -> None:
    url = "http://127.0.0.1:1/v1"
    one, other = gymkit.Model(url, "m", attempts=1, api_key="a"), gymkit.Model(url, "m", concurrency=3, api_key="b")
    assert one.settings() == other.settings()
    assert one.settings() != gymkit.Model(url, "m", extra_body={"temperature": 0}).settings()
    assert one.settings() != gymkit.Model(url, "m", token_ids=True).settings()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"url": "ftp://host"}, "http"),
        ({"url": f"http://u:{SECRET}@host/v1"}, "credentials"),
        ({"attempts": 0}, "max_http_attempts"),
        ({"api": "telnet"}, "telnet"),
        ({"api": "responses", "token_ids": True}, "token ids"),
    ],
)
def test_mistakes_are_told_at_once(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as raised:
        gymkit.Model(**{"url": "http://host/v1", "name": "m", **arguments})
    assert SECRET not in str(raised.value)


def test_params_that_are_none_are_told() -> None:
    with pytest.raises(BadStatus, match="max_tokens"):
        gymkit.Model.scripted(["x"]).ask("hi", max_tokens=3)


def test_a_scripted_model_says_what_was_written() -> None:
    model = gymkit.Model.scripted(["one", "two"])
    assert repr(model) == "<Model scripted in this process>"
    assert [model.ask("hi"), model.ask("hi")] == ["one", "two"]
    with pytest.raises(BadStatus, match="no further reply"):
        model.ask("hi")


def test_a_served_model_speaks_to_other_programs() -> None:
    capture = MemoryCapture()
    with (
        gymkit.Model.scripted(lambda _: "served").serve(capture=capture) as hosted,
        openai.OpenAI(base_url=f"{hosted.url}/ng-rollout/r1/v1", api_key="none") as client,
    ):
        assert client.responses.create(model="any", input="x").output_text == "served"
    assert len(capture.drain("r1").calls) == 1


def test_the_local_model_is_there_or_says_how_to_get_it() -> None:
    try:
        model = gymkit.Model.local()
    except MissingExtra as missing:
        assert "pip install" in str(missing)
        return
    assert repr(model) == "<Model SmolLM2-135M-Instruct in this process>"
    assert "hello" in model.ask("Say hello.", temperature=0, max_output_tokens=40).lower()


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of a service that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


@pytest.fixture
def nobody() -> str:
    """The address of no service."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of a service that says no, in words of its own that name no kind of ours."""
    body = codec.dumps({"error": {"message": "no such model", "code": "model_not_found"}})
    with serve(ScriptedAgent(lambda _: Fault(404, body))) as hosted:
        yield f"{hosted.url}/v1"


@pytest.mark.parametrize("protocol", [None, SingleAgentTurn])
@pytest.mark.parametrize(
    ("where", "kind"), [("nobody", "unreachable"), ("deaf", "timeout"), ("refusing", "http_status")]
)
def test_a_failed_rollout_says_how_its_model_failed(
    where: str, kind: str, protocol: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model = gymkit.Model(request.getfixturevalue(where), "small", attempts=1, timeout=0.2)
    rollouts = gymkit.Env("counter").rollouts(
        gymkit.SimpleAgent(model), output=tmp_path / "r.jsonl", limit=1, progress=False, protocol=protocol
    )
    assert rollouts.failures["failure_kind"].tolist() == [kind]
    assert rollouts.rewards["failure_kind"].tolist() == [kind]
    with pytest.raises(BadStatus) as raised:
        model.ask("hi")
    assert raised.value.kind == kind
