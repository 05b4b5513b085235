"""Recording in the SDK: on for models in this process, and switched by two keys in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gymkit
from gymkit.config import load
from gymkit.errors import ConfigError
from gymkit.sdk.catalogue import KNOWN
from gymkit.sdk.collection import Collection
from gymkit.sdk.observability import capture_of
from gymkit.servers.capture import FileCapture

ENV = gymkit.Env("counter")


def run(tmp_path: Path, agent: Any, **options: Any) -> dict[str, Any]:
    output = tmp_path / "rollouts.jsonl"
    return ENV.rollouts(agent, output=output, limit=1, progress=False, **options).record(0)


def test_a_simple_agents_calls_are_on_its_rows_unless_that_is_switched_off(tmp_path: Path) -> None:
    agent = gymkit.SimpleAgent(gymkit.Model.scripted(["x"]))
    row = run(tmp_path, agent)
    assert row["ng_trajectory"]["turns"][0]["answer"] == "x"
    assert row["ng_trajectory"]["gaps"] == []
    assert not [key for key in run(tmp_path, agent, capture=False) if key.startswith("ng_")]


def test_the_models_that_a_function_asks_are_on_its_rows(tmp_path: Path) -> None:
    model = gymkit.Model.scripted(["first", "second"])

    def sync(params: dict[str, Any]) -> str:
        model.ask("one?")
        return model.ask("two?")

    async def twin(params: dict[str, Any]) -> str:
        await model.aask("one?")
        return await model.aask("two?")

    def steps(params: dict[str, Any]) -> Any:
        yield "increment_counter", {"count": len(model.ask("one?"))}
        return model.ask("two?")

    for function in (sync, twin, steps):
        row = run(tmp_path, gymkit.Agent(function))
        turns = row["ng_trajectory"]["turns"]
        assert [(turn["question"], turn["answer"]) for turn in turns] == [("one?", "first"), ("two?", "second")]
        assert row["ng_trajectory"]["gaps"] == []


def test_a_function_that_asks_no_model_has_small_rows(tmp_path: Path) -> None:
    row = run(tmp_path, gymkit.Agent(lambda params: "x"))
    assert not [key for key in row if key.startswith("ng_")]


def test_a_model_asked_outside_of_a_rollout_is_on_no_record() -> None:
    assert gymkit.Model.scripted(["x"]).ask("hi") == "x"


def test_a_functions_answer_gets_the_tokens_of_the_model_that_wrote_it(tmp_path: Path) -> None:
    model = gymkit.Model.scripted(["x"], token_ids=True)
    row = run(tmp_path, gymkit.Agent(lambda params: model.ask("?")))
    assert row["_ng_token_capture"] == {"calls": 1, "attached": 1}
    assert bytes(row["response"]["output"][0]["generation_token_ids"]) == b"<assistant>x\n"
    edited = run(tmp_path, gymkit.Agent(lambda params: model.ask("?") + "!"))
    assert edited["mask_sample"] is True
    assert "not what call 1 of 1 said" in edited["failure_reason"]


def test_files_are_read_where_servers_elsewhere_write_them(tmp_path: Path) -> None:
    agent = gymkit.SimpleAgent(gymkit.Model.scripted(["x"]))
    row = run(tmp_path, agent, capture=FileCapture(tmp_path / "captures"))
    assert (tmp_path / "captures" / "0-0.capture.jsonl").exists()
    assert row["ng_trajectory"]["turns"][0]["answer"] == "x"
    again = run(tmp_path, agent, capture=FileCapture(tmp_path / "captures"))
    assert len(again["ng_model_call_capture"]["calls"]) == 1


YAML = """\
the_counter: {resources_servers: {counter: {entrypoint: app.py, domain: agent}}}
policy: {responses_api_models: {scripted_model: {entrypoint: app.py, replies: [x, x]}}}
solo:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: the_counter}
      model_server: {type: responses_api_models, name: policy}
"""


def configured(tmp_path: Path, *tokens: str) -> Any:
    (tmp_path / "config.yaml").write_text(YAML)
    return load([f"+config_paths=[{tmp_path / 'config.yaml'}]", *tokens], implementations=KNOWN)


def test_two_keys_switch_it_on_in_yaml(tmp_path: Path) -> None:
    from gymkit.sdk import bridge
    from gymkit.sdk.configured import build, run_of
    from gymkit.sdk.routed import RoutingSettings, routing_of
    from gymkit.shipped import shipped

    config = configured(tmp_path, "+observability_enabled=true", f"+model_call_capture_dir={tmp_path / 'captures'}")
    collection: Collection = run_of(
        config,
        routing_of(config, RoutingSettings()),
        apps=build(config),
        tasks=shipped("data/counter.jsonl"),
        output=tmp_path / "rollouts.jsonl",
        expansion=gymkit.sdk.env.Expansion(limit=1),
    )
    bridge.run(collection.collect())
    row = gymkit.Rollouts.read(tmp_path / "rollouts.jsonl").record(0)
    assert row["ng_trajectory"]["turns"][0]["answer"] == "x"
    assert row["ng_trajectory"]["gaps"] == []


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        (["+observability_enabled=true"], "model_call_capture_dir"),
        (["+observability_enabled=true", "+model_call_capture_dir=captures"], "absolute"),
        (["+observability_enabled=maybe"], "true or false"),
    ],
)
def test_a_switch_that_cannot_work_is_told_at_once(tmp_path: Path, tokens: list[str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        capture_of(configured(tmp_path, *tokens))


def test_without_the_switch_nothing_is_recorded(tmp_path: Path) -> None:
    assert capture_of(configured(tmp_path)) is None
