"""NeMo Gym 0.7.0's collector, environment server and agent with ours, in every pairing: same rewards and trajectories.

Opt in with ``GYMKIT_ANCHOR_PYTHON``, a Python that has ``nemo-gym`` 0.7.0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
import yaml

from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.environments.single_agent_turn import SingleAgentTurn, SingleAgentTurnConfig
from gymkit.resources.counter import Counter
from gymkit.sdk.check.servers import acheck_server
from gymkit.sdk.env import Env
from gymkit.servers.hosting import serve
from gymkit.servers.route import Route
from gymkit.shipped import shipped
from gymkit.wire import codec
from tests.bench.anchor import RELAY, Anchor, alone, anchored
from tests.cli.conftest import Gymkit, Started
from tests.cli.test_anchor import PYTHON, pytestmark, told

__all__ = ["pytestmark"]

ROWS = Env("counter").rows
ROUTED = ("+environment_routing_mode=taskset", r"+environment_server_routes={counter\:x:turn}")
SHARED = """\
the_counter: {{resources_servers: {{{counter}: {{entrypoint: app.py, domain: agent}}}}}}
policy_model:
  responses_api_models:
    openai_model: {{entrypoint: app.py, openai_base_url: "{url}/v1", openai_api_key: none, openai_model: scripted}}
simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {{type: resources_servers, name: the_counter}}
      model_server: {{type: responses_api_models, name: policy_model}}
player:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      model_server: {{type: responses_api_models, name: policy_model}}
turn:
  environment_servers:
    single_agent_turn:
      entrypoint: app.py
      resources_server: {{type: resources_servers, name: {room}}}
      agent_server: {{type: responses_api_agents, name: player}}
      resources_tool_transports: [direct_http]
      max_concurrent_episodes: null
      queue_timeout_seconds: null
      default_episode_timeout_seconds: 600
      cleanup_timeout_seconds: 30
"""
WEATHER = "weather: {resources_servers: {example_single_tool_call: {entrypoint: app.py, domain: agent}}}\n"
THEIRS = (
    "resources_servers/example_session_state_mgmt",
    "resources_servers/example_single_tool_call",
    "responses_api_models/openai_model",
    "responses_api_agents/simple_agent",
    "environment_servers/single_agent_turn",
    RELAY,
)


def episode(index: int) -> dict[str, Any]:
    return {"task_id": {"taskset": "counter:x", "task_id": str(index)}, "task_input": ROWS[index]}


@pytest.fixture
def ours(tmp_path: Path, service: str, gymkit: Gymkit) -> list[Any]:
    """The run that is ours from end to end; its configuration and episodes lie in the test's folder."""
    (tmp_path / "ours.yaml").write_text(SHARED.format(counter="counter", room="the_counter", url=service))
    (tmp_path / "eps.jsonl").write_bytes(b"".join(codec.dumps(episode(index)) + b"\n" for index in range(len(ROWS))))
    options = ("--config", "ours.yaml", "--agent", "simple_agent")
    ended = gymkit("eval", "run", *options, "-i", "data/counter.jsonl", "-o", "ours.jsonl")
    assert ended.status == 0
    return told(tmp_path / "ours.jsonl")


def test_their_collector_drives_our_agent_and_our_environment_server(
    tmp_path: Path, ours: list[Any], start: Callable[..., Started]
) -> None:
    servers = start("--config", "ours.yaml", "+head_server.port=0")
    collector = Anchor(Path(PYTHON), tmp_path, servers.port, servers.process.pid, 0.0)
    collector.collect(shipped("data/counter.jsonl"), tmp_path / "flat.jsonl", 4, agent="simple_agent")
    assert told(tmp_path / "flat.jsonl") == ours
    collector.collect(tmp_path / "eps.jsonl", tmp_path / "episodes.jsonl", 4, *ROUTED, agent="simple_agent")
    assert told(tmp_path / "episodes.jsonl") == ours
    row = codec.loads((tmp_path / "episodes.jsonl").read_bytes().splitlines()[0])
    assert [call["tool_name"] for call in row["ng_trajectory"]["tool_calls"]], "they read what our agent observed"


def test_our_collector_and_our_environment_server_drive_theirs(
    tmp_path: Path, ours: list[Any], service: str, gymkit: Gymkit
) -> None:
    text = SHARED.format(counter="example_session_state_mgmt", room="weather", url=service) + WEATHER
    with TemporaryDirectory() as short, anchored(Path(PYTHON), Path(short), text, THEIRS) as running:
        head = f"http://127.0.0.1:{running.head_port}"
        urls = {each["process_name"]: each["url"] for each in httpx.get(f"{head}/server_instances").json()}
        files = ("-i", "data/counter.jsonl", "-o", "mixed.jsonl", f"+head_server.port={running.head_port}")
        ended = gymkit("eval", "run", "--no-serve", "--agent", "simple_agent", *files)
        assert ended.status == 0
        assert told(tmp_path / "mixed.jsonl") == ours
        assert asyncio.run(_turns(urls["player"])) == [(row[1], row[2]) for row in ours]
        for kind, name, task in (
            ("agent", "simple_agent", ROWS[0]),
            ("resources", "weather", Env("weather").rows[0]),
            ("environment", "turn", Env("weather").rows[0]),
            ("environment", "simple_agent_environment_server", ROWS[0]),
        ):
            report = asyncio.run(acheck_server(kind, urls[name], task))
            assert report.ok, str(report)


async def _turns(player: str) -> list[Any]:
    """The counter's tasks, played by our environment server with their agent in our counter."""
    with serve(Counter("counter")) as room:
        config = SingleAgentTurnConfig(resources_tool_transports=("direct_http",))
        server = SingleAgentTurn("turn", config, Route.to_url("counter", room.url), Route.to_url("player", player))
        try:
            route = Route.to_app("turn", server)
            return [_result((await route.post("/run", _request(index))).json()) for index in range(len(ROWS))]
        finally:
            await server.aclose()


def test_their_environment_server_drives_our_agent_in_our_counter(ours: list[Any], service: str) -> None:
    agent = SimpleAgent("player", SimpleAgentConfig(), Route.to_url("policy_model", service), correlated=False)
    counter = Counter("counter")
    with serve(counter) as room, serve(agent) as player, _their_turn(room.url, player.url) as url:
        replies = [httpx.post(f"{url}/run", json=_request(index), timeout=60).json() for index in range(len(ROWS))]
        assert [_result(reply) for reply in replies] == [(row[1], row[2]) for row in ours]
        spoilt = {**ROWS[0], "initial_count": "three"}
        failed = httpx.post(f"{url}/run", json=_request(0, spoilt), timeout=60).json()["failure"]
        assert (failed["stage"], failed["terminal"]) == ("seed", True)
    assert (len(agent.sessions), len(counter.sessions)) == (0, 0)


def _request(index: int, task: dict[str, Any] | None = None) -> dict[str, Any]:
    named = {"taskset": "counter:x", "task_id": str(index)}
    task_input = task or ROWS[index]
    return {"episode_id": {"rollout_id": f"{index}-0"}, "task": {"task_id": named, "task_input": task_input}}


def _result(reply: dict[str, Any]) -> tuple[float, list[Any]]:
    from tests.cli.test_anchor import _told

    assert reply["failure"] is None
    return reply["result"]["reward"], [_told(item) for item in reply["result"]["response"]["output"]]


def _their_turn(room: str, player: str) -> AbstractContextManager[str]:
    """NeMo Gym's ``single_agent_turn`` alone, in front of two servers that run already."""
    config = {
        "counter": {"resources_servers": {"counter": {}}},
        "player": {"responses_api_agents": {"simple_agent": {}}},
        "turn": yaml.safe_load(SHARED.format(counter="counter", room="counter", url="http://127.0.0.1:1"))["turn"],
    }
    hosted = {"counter": room, "player": player}
    return alone(Path(PYTHON), "environment_servers/single_agent_turn", config, "turn", hosted)
