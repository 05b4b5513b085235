"""The servers from YAML, and the commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("usersim")

import gymkit as gk
from gymkit.config import load
from gymkit.errors import ConfigError
from gymkit.sdk.catalogue import KNOWN
from gymkit.sdk.configured import build
from gymkit.testing import usersim as scripted
from gymkit.usersim.environment import NemoUserSim, PackageStage
from gymkit.usersim.resources import NemoUserSimResources
from gymkit.wire import codec

YAML = "+config_paths=[data/nemo_user_sim.yaml]"
POLICY = ["+policy_base_url=http://127.0.0.1:9/v1", "+policy_api_key=k", "+policy_model_name=gpt-4o"]
USER = ["user_model_base_url=http://127.0.0.1:8/v1", "user_model_api_key=u", "user_model_name=user-model"]


def test_the_user_has_no_default() -> None:
    with pytest.raises(ConfigError, match="user_model_base_url"):
        load([YAML, *POLICY], implementations=KNOWN)


def test_the_shipped_yaml_starts_the_whole_thing_and_finds_the_models_by_their_references() -> None:
    apps = build(load([YAML, *POLICY, *USER, "embedding_model_name=e5"], implementations=KNOWN))
    environment, resources = apps["nemo_user_sim_environment"], apps["nemo_user_sim_resources"]
    assert isinstance(environment, NemoUserSim)
    assert isinstance(resources, NemoUserSimResources)
    assert isinstance(environment.stage, PackageStage)
    assert environment.stage.names["user"] == "user-model"
    assert environment.stage.names["assistant"] == environment.stage.names["judge"] == "gpt-4o"
    assert environment.stage.embedder is not None
    assert environment.stage.embedder.model == "e5"
    assert environment.stage.embedder.route.url == "http://127.0.0.1:9/v1", "support falls back to the policy"
    assert resources.judge_name == "gpt-4o"
    assert environment.config.default_episode_timeout_seconds == 1800
    assert environment.config.cleanup_timeout_seconds == 180


def test_a_policy_that_thinks_is_said_to_in_one_setting() -> None:
    config = load([YAML, *POLICY, *USER, "+policy_uses_reasoning_parser=true"], implementations=KNOWN)
    assert config.server("policy_model", "responses_api_models").settings["uses_reasoning_parser"] is True


def test_an_unknown_setting_is_told() -> None:
    wrong = "++nemo_user_sim_environment.environment_servers.nemo_user_sim.actor_timeout=3"
    with pytest.raises(ConfigError, match="actor_timeout"):
        load([YAML, *POLICY, *USER, wrong], implementations=KNOWN)


def test_prepare_and_run_from_the_shell(tmp_path: Path) -> None:
    def gymkit(*tokens: str) -> str:
        command = [sys.executable, "-m", "gymkit", *tokens]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = gymkit("usersim", "prepare", "-o", "rows.jsonl", "--probe", "general_open_ended", "--max-turns", "1")
    assert "1 rows for 1 probes" in told
    models = [gk.Model.scripted(brain).serve() for brain in (scripted.assistant(), scripted.user, scripted.support())]
    policy, user, support = models
    try:
        told = gymkit(
            *("eval", "run", YAML, "-i", "rows.jsonl", "-o", "out/r.jsonl"),
            *(f"+policy_base_url={policy.url}/v1", "+policy_api_key=k", "+policy_model_name=gpt-4o"),
            *(f"user_model_base_url={user.url}/v1", "user_model_api_key=u", "user_model_name=user-model"),
            f"support_model_base_url={support.url}/v1",
            *("+observability_enabled=true", f"+model_call_capture_dir={tmp_path / 'calls'}"),
        )
    finally:
        for each in models:
            each.stop()
    assert "mean/reward: 1.0 (1 of 1 rollouts)" in told
    row = codec.loads((tmp_path / "out/r.jsonl").read_bytes())
    assert row["_ng_result_type"] == "nemo_user_sim"
    assert row["usersim_result"]["conversation_messages"]
    calls = [each["response_metadata"]["model_ref"]["name"] for each in row["ng_trajectory"]["model_calls"]]
    assert set(calls) == {"user_model", "policy_model", "support_model"}
    assert len(row["ng_trajectory"]["turns"]) == calls.count("policy_model")
    assert row["ng_trajectory"]["gaps"] == []
