"""Runs of a configuration by agent, by one environment server, by task set: servers in this process, files on disk."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from gymkit.collect.outcome import Outcome
from gymkit.collect.plan import Expansion
from gymkit.config import Config, load
from gymkit.errors import ConfigError, InputError
from gymkit.resources.counter import Counter
from gymkit.sdk.catalogue import KNOWN
from gymkit.sdk.configured import build, run_of
from gymkit.sdk.routed import RoutingSettings, routing_of
from gymkit.servers.route import Route
from gymkit.testing.agent import Fault, ScriptedAgent
from gymkit.wire import codec

TOOLS = [tool.schema() for tool in Counter("counter").tools.values()]
YAML = """\
the_counter: {resources_servers: {counter: {entrypoint: app.py, domain: agent}}}
policy:
  responses_api_models:
    scripted_model:
      entrypoint: app.py
      replies:
        - [{type: function_call, call_id: c1, name: increment_counter, arguments: '{"count": 2}'}]
        - done
player:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      model_server: {type: responses_api_models, name: policy}
      max_steps: 4
soloist:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: the_counter}
      model_server: {type: responses_api_models, name: policy}
turn:
  environment_servers:
    single_agent_turn:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: the_counter}
      agent_server: {type: responses_api_agents, name: player}
      resources_tool_transports: [direct_http]
      max_concurrent_episodes: 2
      queue_timeout_seconds: 30
      default_episode_timeout_seconds: 60
      cleanup_timeout_seconds: 10
flat_turn:
  environment_servers:
    single_agent_turn_legacy:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: the_counter}
      agent_server: {type: responses_api_agents, name: player}
      resources_tool_transports: [direct_http]
"""


def flat(expected: int) -> dict[str, Any]:
    params = {"input": [{"role": "user", "content": "add 2"}], "tools": TOOLS}
    return {"responses_create_params": params, "initial_count": 3, "expected_count": expected}


def episode(expected: int, taskset: str = "counter:train") -> dict[str, Any]:
    return {"task_id": {"taskset": taskset, "task_id": f"t{expected}"}, "task_input": flat(expected)}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "c.yaml").write_text(YAML)
    return load([], flags={"config_paths": [str(tmp_path / "c.yaml")]}, implementations=KNOWN)


def run(
    config: Config, tmp_path: Path, rows: list[dict[str, Any]], **routing: Any
) -> tuple[Outcome, list[dict[str, Any]]]:
    tasks, output = tmp_path / "tasks.jsonl", tmp_path / "r.jsonl"
    tasks.write_bytes(b"".join(codec.dumps(row) + b"\n" for row in rows))
    options = {key: routing.pop(key) for key in ("resume", "expansion") if key in routing}
    collection = run_of(
        config,
        routing_of(config, RoutingSettings(**routing)),
        apps=build(config),
        tasks=tasks,
        output=output,
        **{"expansion": Expansion(), **options},
    )
    outcome = asyncio.run(collection.collect())
    read = [codec.loads(line) for line in output.read_bytes().splitlines()]
    return outcome, sorted(read, key=lambda row: (row["_ng_task_index"], row["_ng_rollout_index"]))


ROUTES = {"counter:train": "turn"}


class TestRuns:
    def test_an_agent_that_owns_its_rollouts(self, config: Config, tmp_path: Path) -> None:
        outcome, rows = run(config, tmp_path, [flat(5), flat(6)], agent_name="soloist")
        assert outcome.mean == 0.5
        assert [row["reward"] for row in rows] == [1.0, 0.0]
        assert {row["_ng_result_type"] for row in rows} == {"legacy_agent"}
        assert rows[0]["agent_ref"] == {"name": "soloist"}
        assert rows[0]["gymkit"]["steps"] == 2

    def test_rows_by_task_set(self, config: Config, tmp_path: Path) -> None:
        outcome, rows = run(
            config, tmp_path, [episode(5), episode(6)], environment_routing_mode="taskset",
            environment_server_routes=ROUTES, expansion=Expansion(repeats=2),
        )  # fmt: skip
        assert (outcome.scored, outcome.mean) == (4, 0.5)
        assert [row["reward"] for row in rows] == [1.0, 1.0, 0.0, 0.0]
        first = rows[0]
        assert (first["_ng_environment_server"], first["_ng_result_type"]) == ("turn", "single_agent_turn")
        assert first["_ng_task_id"] == {"taskset": "counter:train", "task_id": "t5"}
        assert "agent_ref" not in first
        assert first["gymkit"]["steps"] == 2
        assert [group["_ng_environment_server"] for group in _metrics(tmp_path)] == ["turn"]

    def test_rows_of_both_kinds_in_one_run_have_metrics_of_their_own(self, config: Config, tmp_path: Path) -> None:
        outcome, rows = run(
            config, tmp_path, [episode(5), flat(6)], agent_name="soloist", environment_server_routes=ROUTES
        )
        assert outcome.scored == 2
        assert [row["_ng_result_type"] for row in rows] == ["single_agent_turn", "legacy_agent"]
        groups = {group["_ng_environment_server"]: group for group in _metrics(tmp_path)}
        assert groups["turn"]["agent_metrics"]["mean/reward"] == 1.0
        assert groups[rows[1]["_ng_environment_server"]]["agent_metrics"]["mean/reward"] == 0.0
        assert groups[rows[1]["_ng_environment_server"]]["agent_ref"] == {"name": "soloist"}

    def test_flat_rows_to_one_environment_server(self, config: Config, tmp_path: Path) -> None:
        _, rows = run(
            config, tmp_path, [flat(5)], environment_routing_mode="legacy", environment_server_name="flat_turn"
        )
        assert (rows[0]["reward"], rows[0]["agent_ref"]) == (1.0, {"name": "player"})
        assert rows[0]["_ng_result_type"] == "single_agent_turn_legacy"

    def test_a_run_of_task_sets_is_resumed(self, config: Config, tmp_path: Path) -> None:
        taskset = {"environment_routing_mode": "taskset", "environment_server_routes": ROUTES}
        _, rows = run(config, tmp_path, [episode(5), episode(6)], **taskset)
        path = tmp_path / "r.jsonl"
        path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
        outcome, again = run(config, tmp_path, [episode(5), episode(6)], resume=True, **taskset)
        assert outcome.scored == 2
        assert [row["reward"] for row in again] == [row["reward"] for row in rows]

    def test_what_results_depend_on_is_on_record_without_secrets(self, tmp_path: Path) -> None:
        (tmp_path / "c.yaml").write_text(YAML.replace("scripted_model:", "openai_model:").replace(
            YAML[YAML.index("      replies:") : YAML.index("player:")],
            "      openai_base_url: http://127.0.0.1:1/v1\n      openai_api_key: hunter2hunter2\n      openai_model: m\n",  # noqa: E501
        ))  # fmt: skip
        config = load([], flags={"config_paths": [str(tmp_path / "c.yaml")]}, implementations=KNOWN)
        settings = {"agent_name": "soloist", "environment_server_routes": ROUTES}
        routing = routing_of(config, RoutingSettings(**settings))
        apps = build(config)
        collection = run_of(
            config, routing, apps=apps, tasks=tmp_path / "t", output=tmp_path / "r", expansion=Expansion()
        )
        asyncio.run(_close(apps))
        assert collection.settings["agent"]["model"]["openai_model"] == "m"
        assert collection.settings["environment_servers"]["turn"]["agents"]["player"]["model"]["type"] == "openai_model"
        assert "hunter2" not in str(collection.settings)


async def _close(apps: Any) -> None:
    for app in apps.values():
        await app.aclose()


def _metrics(tmp_path: Path) -> Any:
    return codec.loads((tmp_path / "r_aggregate_metrics.json").read_bytes())


class TestMistakes:
    @pytest.mark.parametrize(
        ("settings", "word"),
        [
            ({"environment_routing_mode": "legacy"}, "environment_server_name"),
            ({"environment_routing_mode": "taskset"}, "environment_server_routes"),
            ({"environment_routing_mode": "smoke"}, "environment_routing_mode"),
        ],
    )
    def test_a_mode_needs_its_setting(self, settings: dict[str, Any], word: str) -> None:
        with pytest.raises(ValueError, match=word):
            RoutingSettings(**settings)

    @pytest.mark.parametrize(
        ("settings", "word"),
        [
            ({"environment_server_routes": {"t": "trun"}}, "did you mean 'turn'"),
            (
                {"environment_routing_mode": "legacy", "environment_server_name": "flat_trun"},
                "did you mean 'flat_turn'",
            ),
            ({}, "which agent"),
            ({"agent_name": "player"}, "several environment servers reference it: turn and flat_turn"),
        ],
    )
    def test_a_server_that_is_not_there_is_named(self, config: Config, settings: dict[str, Any], word: str) -> None:
        with pytest.raises(ConfigError, match=word):
            routing_of(config, RoutingSettings(**settings))

    @pytest.mark.parametrize(
        ("row", "settings", "word"),
        [
            (episode(5, "counter:tran"), {"environment_server_routes": ROUTES}, "did you mean 'counter:train'"),
            (episode(5), {"agent_name": "soloist"}, "no environment server is set for 'counter:train'"),
            (
                flat(5),
                {"environment_routing_mode": "taskset", "environment_server_routes": ROUTES},
                "takes no flat rows",
            ),
            (flat(5), {"environment_server_routes": ROUTES}, "agent_name"),
            (
                flat(5),
                {"environment_routing_mode": "legacy", "environment_server_name": "turn"},
                r"turn \(single_agent_turn\) takes only rows that name",
            ),
            (
                {**episode(5), "task_input": {**flat(5), "expected_count": "many"}},
                {"environment_server_routes": ROUTES},
                "task_input.expected_count",
            ),
            (
                {**episode(5), "task_input": {**flat(5), "task_data": {"expected_count": 7}}},
                {"environment_server_routes": ROUTES},
                "differs from the field",
            ),
            (
                {**episode(5), "task_input": {**flat(5), "task_data": 7}},
                {"environment_server_routes": ROUTES},
                "task_input",
            ),
            ({**episode(5), "task_id": {"taskset": ["x"]}}, {"environment_server_routes": ROUTES}, "taskset"),
        ],
    )
    def test_a_row_that_nobody_runs_is_named_before_anything_starts(
        self, config: Config, tmp_path: Path, row: dict[str, Any], settings: dict[str, Any], word: str
    ) -> None:
        with pytest.raises(InputError, match=word) as caught:
            run(config, tmp_path, [row], **settings)
        assert "tasks.jsonl:1" in str(caught.value)

    def test_a_reference_that_is_missing_or_wrong_is_named(self, tmp_path: Path) -> None:
        for before, after, word in (
            ("agent_server: {type: responses_api_agents, name: player}", "", "agent_server is missing"),
            ("name: policy", "name: polcy", "did you mean 'policy'"),
            ("max_steps: 4", "max_step: 4", "did you mean 'max_steps'"),
            ("queue_timeout_seconds: 30", "", "queue_timeout_seconds"),
        ):
            (tmp_path / "c.yaml").write_text(YAML.replace(before, after))
            with pytest.raises(ConfigError, match=word):
                load([], flags={"config_paths": [str(tmp_path / "c.yaml")]}, implementations=KNOWN)


def test_a_server_that_cannot_aggregate_costs_its_group_only(
    config: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tasks, output = tmp_path / "tasks.jsonl", tmp_path / "r.jsonl"
    tasks.write_bytes(b"".join(codec.dumps(row) + b"\n" for row in (episode(5), flat(6))))
    apps = build(config)

    apps["turn"].metrics = Route.to_app("broken", ScriptedAgent(lambda _: Fault(500, b"no numbers today")))  # type: ignore[attr-defined]
    routing = routing_of(config, RoutingSettings(agent_name="soloist", environment_server_routes=ROUTES))
    collection = run_of(config, routing, apps=apps, tasks=tasks, output=output, expansion=Expansion())
    with caplog.at_level(logging.WARNING, "gymkit"):
        asyncio.run(collection.collect())
    assert len(_metrics(tmp_path)) == 1
    assert "no numbers today" in caplog.text
