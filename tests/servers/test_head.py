"""Discovery over a real socket, for our client and for a plain one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
import yaml

from gymkit.config import Config, load
from gymkit.errors import BadStatus, ConfigError, InvalidReply, NotJson, Unreachable
from gymkit.servers.head import Head, fetch_config
from gymkit.servers.hosting import Hosted, serve
from tests.servers.test_hosting import hello


@pytest.fixture
def config() -> Config:
    """A counter, its agent and the generated relay, on made-up ports."""
    counter = "+counter.resources_servers.counter={domain:agent}"
    agent = "+far.responses_api_agents.remote_agent={agent_base_url:'http://far:1',resources_server:{type:resources_servers,name:counter}}"
    loaded = load([counter, agent, "+policy_api_key=sk-very-secret"])
    return loaded.placed({name: 4000 + index for index, name in enumerate(loaded.servers)}, 4999)


@pytest.fixture
def head(config: Config) -> Head:
    """The app."""
    return Head(config)


@pytest.fixture
def hosted(head: Head) -> Iterator[Hosted]:
    """The app on a socket."""
    with serve(head) as hosted:
        yield hosted


def test_readiness_follows_liveness(head: Head, hosted: Hosted) -> None:
    def statuses() -> list[int]:
        paths = ("/", "/livez", "/readyz", "/healthz", "/health")
        return [httpx.get(hosted.url + path, trust_env=False).status_code for path in paths]

    assert statuses() == [200, 200, 503, 503, 503]
    head.ready = True
    assert statuses() == [200] * 5


def test_publishes_the_config_as_a_json_string_of_yaml(hosted: Hosted) -> None:
    text = httpx.get(f"{hosted.url}/global_config_dict_yaml", trust_env=False).json()
    tree = yaml.safe_load(text)
    assert tree["counter"]["resources_servers"]["counter"] == {
        "entrypoint": "app.py",
        "domain": "agent",
        "host": "127.0.0.1",
        "port": 4000,
    }
    assert tree["far_environment_server"]["environment_servers"]["legacy_agent"]["port"] == 4002
    assert "sk-very-secret" not in text


def test_lists_the_instances(hosted: Hosted) -> None:
    rows = httpx.get(f"{hosted.url}/server_instances", trust_env=False).json()
    assert [(row["process_name"], row["server_type"], row["name"], row["url"]) for row in rows] == [
        ("counter", "resources_servers", "counter", "http://127.0.0.1:4000"),
        ("far", "responses_api_agents", "remote_agent", "http://127.0.0.1:4001"),
        ("far_environment_server", "environment_servers", "legacy_agent", "http://127.0.0.1:4002"),
    ]


def test_a_client_learns_where_everything_is(hosted: Hosted, config: Config) -> None:
    there = asyncio.run(fetch_config(hosted.url))
    assert {name: server.url for name, server in there.servers.items()} == {
        name: server.url for name, server in config.servers.items()
    }
    assert there.environment_server_of("far").port == 4002


def test_proxies_are_not_asked(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert "far" in asyncio.run(fetch_config(hosted.url)).servers


def test_nobody_there() -> None:
    with serve(hello) as gone:
        pass
    with pytest.raises(Unreachable) as caught:
        asyncio.run(fetch_config(gone.url))
    assert gone.url in str(caught.value)
    assert "gymkit env start" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, b"{}", BadStatus),
        (200, b"<html>", NotJson),
        (200, b'{"a": 1}', InvalidReply),
        (200, b'"[1"', ConfigError),
    ],
)
def test_somebody_else_there(status: int, body: bytes, error: type[Exception]) -> None:
    async def other(scope: object, receive: object, send: object) -> None:
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": body})  # type: ignore[operator]

    with serve(other) as hosted, pytest.raises(error) as caught:
        asyncio.run(fetch_config(hosted.url))
    assert hosted.url in str(caught.value)
