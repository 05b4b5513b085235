"""The block ``token_id_capture:``: what it takes and refuses, and a program's rows with the tokens of its model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.collect.plan import Expansion
from gymkit.config import Config, load
from gymkit.environments.single_agent_turn import SingleAgentTurn
from gymkit.errors import ConfigError, TooManyMasked
from gymkit.sdk import bridge
from gymkit.sdk.catalogue import KNOWN
from gymkit.sdk.configured import build, run_of
from gymkit.sdk.observability import capture_of
from gymkit.sdk.routed import RoutingSettings, routing_of
from gymkit.sdk.token_capture import token_capture_of
from gymkit.shipped import shipped
from gymkit.testing.agent import call

PROGRAM = """
import json, os, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
def ask(messages):
    body = json.dumps({"model": "m", "messages": messages}).encode()
    reply = json.load(opener.open(urllib.request.Request(url, body, {"content-type": "application/json"})))
    return reply["choices"][0]["message"]
messages = [{"role": "user", "content": sys.stdin.read()}]
for number in range(2):
    said = ask(messages)
    if len(sys.argv) > 1:
        said["content"] += sys.argv[1]
    messages += [said, {"role": "user", "content": "go on"}]
print("that is all")
"""
"""Asks twice, and prints something else; with an argument it edits what its model said before it goes on."""


def yaml(tmp_path: Path, *, edits: str = "", agent: str = "", block: str = "") -> str:
    (tmp_path / "program.py").write_text(PROGRAM)
    argv = json.dumps([sys.executable, "{entrypoint}", *([edits] if edits else [])])
    return f"""\
the_counter: {{resources_servers: {{counter: {{entrypoint: app.py, domain: agent}}}}}}
policy: {{responses_api_models: {{scripted_model: {{entrypoint: app.py, replies: [a, b, a, b, a, b, a, b, a, b]}}}}}}
solo:
  responses_api_agents:
    command_agent:
      entrypoint: program.py
      argv: {argv}
      {agent}
      resources_server: {{type: resources_servers, name: the_counter}}
      model_server: {{type: responses_api_models, name: policy}}
{block}
"""


def config_of(tmp_path: Path, *tokens: str, **written: str) -> Config:
    path = tmp_path / "config.yaml"
    path.write_text(yaml(tmp_path, **written))
    return load([f"+config_paths=[{path}]", *tokens], implementations=KNOWN)


def collected(tmp_path: Path, config: Config, limit: int = 2) -> gk.Rollouts:
    output = tmp_path / "rollouts.jsonl"
    collection = run_of(
        config,
        routing_of(config, RoutingSettings()),
        apps=build(config),
        tasks=shipped("data/counter.jsonl"),
        output=output,
        expansion=Expansion(limit=limit),
        concurrency=1,
    )
    bridge.run(collection.collect())
    return gk.Rollouts.read(output)


def on(tmp_path: Path, **more: Any) -> str:
    return (
        f"token_id_capture: {json.dumps({'enabled': True, 'all_agents': True, 'dir': str(tmp_path / 'tokens')} | more)}"
    )


def test_a_programs_rows_get_its_models_words_with_their_tokens(tmp_path: Path) -> None:
    rollouts = collected(tmp_path, config_of(tmp_path, block=on(tmp_path)))
    row = rollouts.record(0)
    texts = [item["content"][0]["text"] for item in row["response"]["output"]]
    assert texts == ["a", "b"]
    assert row["_ng_token_capture"] == {"calls": 2, "attached": 2, "rebuilt": True}
    assert not [key for key in row if key.startswith("ng_")], "calls are told on rows with observability only"
    assert {path.name for path in (tmp_path / "tokens").iterdir()} == {"0-0.tokens.jsonl", "1-0.tokens.jsonl"}
    training = rollouts.to_training()
    assert (len(training.frame), training.refused.empty) == (2, True)
    assert bytes(training.frame["completion_token_ids"][0].tolist()) == b"<assistant>a\n<user>go on\n<assistant>b\n"


def test_with_observability_tokens_and_calls_lie_in_one_directory_unless_told(tmp_path: Path) -> None:
    calls = (f"+model_call_capture_dir={tmp_path / 'calls'}", "+observability_enabled=true")
    block = "token_id_capture: {enabled: true}"
    rollouts = collected(tmp_path, config_of(tmp_path, *calls, block=block, agent="token_id_capture: true"), limit=1)
    assert {path.name for path in (tmp_path / "calls").iterdir()} == {"0-0.tokens.jsonl", "0-0.capture.jsonl"}
    assert "generation_token_ids" not in (tmp_path / "calls" / "0-0.capture.jsonl").read_text()
    row = rollouts.record(0)
    assert len(row["ng_trajectory"]["turns"]) == 2
    assert row["_ng_token_capture"]["rebuilt"] is True


def test_without_rebuilding_tokens_are_written_and_rows_stay(tmp_path: Path) -> None:
    rollouts = collected(tmp_path, config_of(tmp_path, block=on(tmp_path, rebuild_response=False)), limit=1)
    assert rollouts.record(0)["response"]["output"][0]["content"][0]["text"] == "that is all"
    assert "_ng_token_capture" not in rollouts.record(0)
    assert (tmp_path / "tokens" / "0-0.tokens.jsonl").read_bytes().count(b"\n") == 2


def test_edited_words_mask_the_row_unless_holes_are_allowed(tmp_path: Path) -> None:
    masked = collected(tmp_path, config_of(tmp_path, edits="!", block=on(tmp_path)), limit=1)
    assert masked.rewards["failure_kind"].tolist() == ["token_capture_incomplete"]
    loose = on(tmp_path, allow_unresolved_continuations=True)
    assert (
        collected(tmp_path, config_of(tmp_path, edits="!", block=loose), limit=1).record(0).get("mask_sample")
        is not True
    )


def test_too_many_masked_rows_end_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    block = on(tmp_path, max_mask_fraction=0.5, mask_fraction_min_samples=3)
    with pytest.raises(TooManyMasked, match="3 of 3 rollouts"):
        collected(tmp_path, config_of(tmp_path, edits="!", block=block), limit=5)
    assert gk.Rollouts.read(tmp_path / "rollouts.jsonl").rewards["status"].tolist() == ["masked"] * 3 + ["missing"] * 2


def test_an_environment_out_of_the_file_has_the_same_rules(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml(tmp_path, edits="!", block=on(tmp_path, max_mask_fraction=0.0, mask_fraction_min_samples=1)))
    with pytest.raises(TooManyMasked):
        gk.Env.from_config(path).rollouts(output=tmp_path / "rollouts.jsonl", limit=1, progress=False)


def test_a_program_in_a_notebook_has_samples_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    model = gk.Model.scripted(lambda params: f"{len(params['input'])}", token_ids=True)
    agent = gk.Agent.command([sys.executable, str(tmp_path / "program.py")], model)
    rollouts = gk.Env("counter").rollouts(agent, output=tmp_path / "r.jsonl", limit=2, progress=False)
    assert len(rollouts.to_training().frame) == 2
    plain = gk.Agent.command([sys.executable, str(tmp_path / "program.py")], gk.Model.scripted(["x"] * 4))
    rollouts = gk.Env("counter").rollouts(plain, output=tmp_path / "p.jsonl", limit=2, progress=False)
    assert rollouts.record(0)["response"]["output"][0]["content"][0]["text"] == "that is all"


def test_steps_and_calls_of_a_framework_are_told_once(tmp_path: Path) -> None:
    pytest.importorskip("agents", reason="openai-agents is not installed")

    def adder(kit: Any) -> Any:
        from agents import Agent

        return Agent(name="adder", model=kit.model, tools=kit.tools)

    def script(params: dict[str, Any]) -> Any:
        told = any(item.get("type") == "function_call_output" for item in params["input"])
        return "done" if told else [call("increment_counter", "c1", count=2)]

    agent = gk.Agent.adapt("openai-agents", adder, gk.Model.scripted(script, token_ids=True))
    rollouts = gk.Env("counter").rollouts(agent, output=tmp_path / "r.jsonl", limit=1, progress=False)
    assert rollouts.record(0)["_ng_token_capture"] == {"calls": 2, "attached": 2}
    assert len(rollouts.to_training().frame) == 1


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ({"enabled": True, "all_agents": True}, "needs a directory"),
        ({"enabled": True, "all_agents": True, "dir": "tokens"}, r"dir must be an absolute path"),
        ({"enabled": True, "dir": "/tmp"}, "no agent records"),
        ({"enabled": "maybe"}, "enabled: "),
        ({"max_mask_fraction": 1.5}, "max_mask_fraction"),
        ({"mask_fraction_min_samples": 0}, "mask_fraction_min_samples"),
        ({"rebuild_respons": True}, "rebuild_response"),
        ({"sink": "trainer.sinks:Mine"}, r"sink is not supported here: .* set dir"),
        ({"sink_kwargs": {"a": 1}}, "sink_kwargs is not supported"),
        ({"lineage_store": "trainer:Store"}, "lineage_store is not supported"),
        ({"lineage_store_kwargs": {"a": 1}}, "lineage_store_kwargs is not supported"),
        ({"delta_records": True}, "holds its whole prompt"),
        ({"external_staging": True}, "not staged on a trainer's workers"),
        ({"external_staging_backend": "megatron_worker"}, "not staged"),
        ({"control_auth_token_env": "MINE"}, "no control route"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path, block: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        capture_of(config_of(tmp_path, block=f"token_id_capture: {json.dumps(block)}"))
    with pytest.raises(ConfigError, match="must be a block"):
        token_capture_of(config_of(tmp_path, block="token_id_capture: true"))


def test_what_says_nothing_passes(tmp_path: Path) -> None:
    silent: dict[str, Any] = {
        "sink": None,
        "sink_kwargs": {},
        "delta_records": False,
        "external_staging": False,
        "external_staging_backend": "vllm_worker",
        "control_auth_token_env": "NEMO_GYM_TOKEN_CAPTURE_CONTROL_TOKEN",
    }
    assert capture_of(config_of(tmp_path, block=f"token_id_capture: {json.dumps(silent)}")) is None
    nowhere = "token_id_capture: {enabled: true, all_agents: true, rebuild_response: false}"
    assert capture_of(config_of(tmp_path, block=nowhere)) is None


def test_a_model_served_here_tells_its_tokens_as_vllm_does(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    with gk.Model.scripted(["a", "b"], token_ids=True).serve() as hosted:
        model = gk.Model(f"{hosted.url}/v1", "m", token_ids=True)
        agent = gk.Agent.command([sys.executable, str(tmp_path / "program.py")], model)
        rollouts = gk.Env("counter").rollouts(agent, output=tmp_path / "r.jsonl", limit=1, progress=False)
    assert rollouts.record(0)["_ng_token_capture"] == {"calls": 2, "attached": 2, "rebuilt": True}
    assert len(rollouts.to_training().frame) == 1


def test_a_program_that_is_driven_in_sessions_has_samples_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    model = gk.Model.scripted(lambda params: f"{len(params['input'])}", token_ids=True)
    agent = gk.Agent.command([sys.executable, str(tmp_path / "program.py")], model)
    rollouts = gk.Env("counter").rollouts(
        agent, output=tmp_path / "r.jsonl", limit=1, progress=False, protocol=SingleAgentTurn
    )
    assert rollouts.record(0)["_ng_token_capture"]["rebuilt"] is True
    assert len(rollouts.to_training().frame) == 1
