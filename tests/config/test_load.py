"""Files, env.yaml and tokens merged into one configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from gymkit.agents.remote import RemoteAgentConfig
from gymkit.config import Config, ServerReference, load
from gymkit.errors import ConfigError
from tests.config.conftest import KNOWN, Write

SEED = "+config_paths=[counter_remote.yaml]"
KNOBS = "remote_agent.responses_api_agents.remote_agent"


def knobs(config: Config) -> RemoteAgentConfig:
    agent = config.servers["remote_agent"].config
    assert isinstance(agent, RemoteAgentConfig)
    return agent


def test_seed_file_works_unchanged() -> None:
    config = load([SEED], implementations=KNOWN)
    agent = config.servers["remote_agent"]
    assert (agent.server_type, agent.implementation) == ("responses_api_agents", "remote_agent")
    assert agent.references == {
        "resources_server": ServerReference("resources_servers", "example_session_state_mgmt_resources_server")
    }
    assert knobs(config).agent_base_url == "http://your-agent-host:9000"
    assert (knobs(config).concurrency, knobs(config).max_steps) == (4, 8)
    assert knobs(config).run_timeout_secs == 2100.0
    assert (config.head.host, config.head.port) == ("127.0.0.1", 11000)
    assert [server.host for server in config.servers.values()] == ["127.0.0.1"] * 3


def test_tokens_override_files_and_add_to_them() -> None:
    config = load(
        [SEED, f"{KNOBS}.concurrency=7", f"++{KNOBS}.max_steps=null", "+head_server.port=0", f"+{KNOBS}.port=1234"],
        implementations=KNOWN,
    )
    assert (knobs(config).concurrency, knobs(config).max_steps) == (7, None)
    assert config.head.port == 0
    assert config.servers["remote_agent"].port == 1234


def test_tokens_speak_hydras_grammar() -> None:
    tokens = ['+output_jsonl_fpath="a=b, c.jsonl"', "+responses_create_params={temperature:0.5,stop:[x,'y z']}"]
    tree = load([*tokens, "++responses_create_params.top_p=1"]).tree
    assert tree["output_jsonl_fpath"] == "a=b, c.jsonl"
    assert tree["responses_create_params"] == {"temperature": 0.5, "stop": ["x", "y z"], "top_p": 1}


def test_flags_are_settings() -> None:
    assert load(flags={"limit": 3}).tree["limit"] == 3
    with pytest.raises(ConfigError, match="gives limit twice"):
        load(["+limit=4"], flags={"limit": 3})


def test_includes_depth_first_later_wins(write: Write) -> None:
    write("deep.yaml", "a: deep\nb: deep\nc: deep\nd: deep\n")
    write("left.yaml", "config_paths: [deep.yaml]\nb: left\nc: left\nd: left\n")
    write("right.yaml", "c: right\nd: right\n")
    token = write("top.yaml", "config_paths: [left.yaml, right.yaml]\nd: top\npolicy_model_name: ${a}${b}${c}${d}\n")
    assert load([token]).tree["policy_model_name"] == "deepleftrighttop"


def test_files_that_include_each_other_are_read_once(write: Write) -> None:
    write("one.yaml", "config_paths: [two.yaml]\nresults_dir: one\n")
    token = write("two.yaml", "config_paths: [one.yaml]\nresults_dir: two\n")
    assert load([token]).tree["results_dir"] == "two"


def test_env_yaml_lies_between_files_and_tokens(write: Write) -> None:
    write("env.yaml", "policy_base_url: http://env:1\npolicy_model_name: env\nmy_own_note: kept\n")
    token = write("main.yaml", "policy_base_url: http://file:1\n")
    tree = load([token, "+policy_model_name=token"]).tree
    assert (tree["policy_base_url"], tree["policy_model_name"]) == ("http://env:1", "token")


def test_env_yaml_may_name_the_files(write: Write) -> None:
    write("env.yaml", "config_paths: [counter_remote.yaml]\n")
    assert "remote_agent" in load().servers


def test_search_dirs_come_before_extra_roots_and_the_current_folder(
    folder: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = write("x.yaml", "results_dir: here\n")
    write("extra/x.yaml", "results_dir: extra\n")
    write("given/x.yaml", "results_dir: given\n")
    assert load([token]).tree["results_dir"] == "here"
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", str(folder / "extra"))
    assert load([token]).tree["results_dir"] == "extra"
    assert load([token], search_dirs=["given"]).tree["results_dir"] == "given"


def test_interpolation_and_environment_variables(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYMKIT_TEST_PORT", "9100")
    token = write(
        "vars.yaml",
        "config_paths: [counter_remote.yaml]\nhost_of_agent: far\n"
        "remote_agent:\n  responses_api_agents:\n    remote_agent:\n"
        "      agent_base_url: http://${host_of_agent}:${oc.env:GYMKIT_TEST_PORT}/${oc.env:GYMKIT_TEST_UNSET,v1}\n",
    )
    assert knobs(load([token], implementations=KNOWN)).agent_base_url == "http://far:9100/v1"


def test_inherit_moves_and_copy_keeps(write: Write) -> None:
    token = write(
        "inherit.yaml",
        "config_paths: [counter_remote.yaml]\n"
        "second_agent:\n  _copy: remote_agent\n  responses_api_agents:\n    remote_agent:\n      concurrency: 1\n"
        "counter:\n  _inherit_from: example_session_state_mgmt_resources_server\n"
        "third_agent:\n  responses_api_agents:\n    remote_agent:\n"
        "      _copy: remote_agent.responses_api_agents.remote_agent\n      _delete_key: max_steps, concurrency\n"
        "      resources_server:\n        name: counter\n",
    )
    rename = [f"++{name}.responses_api_agents.remote_agent.resources_server.name=counter" for name in ("second_agent",)]
    config = load([token, *rename, f"++{KNOBS}.resources_server.name=counter"], implementations=KNOWN)
    assert [server.name for server in config.of_type("resources_servers")] == ["counter"]
    limits = {
        name: server.settings.get("concurrency") for name, server in config.servers.items() if server.config is not None
    }
    assert limits == {"remote_agent": 4, "second_agent": 1, "third_agent": None}
    assert "max_steps" not in config.servers["third_agent"].settings


class RunSettings(BaseModel):
    limit: int | None = None
    input_jsonl_fpath: str


def test_settings_are_typed() -> None:
    settings = load(["+limit=3", "+input_jsonl_fpath=a.jsonl", "+prompt_config=null"]).settings(RunSettings)
    assert (settings.limit, settings.input_jsonl_fpath) == (3, "a.jsonl")


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        ([], "input_jsonl_fpath is missing; give +input_jsonl_fpath=…"),
        (["+limit=many", "+input_jsonl_fpath=a"], "the command line: limit is wrong: input should be a valid integer"),
        (["+input_jsonl_fpath=a", "+split=train"], "the command line: split has no effect in this command"),
    ],
)
def test_wrong_settings_get_a_sentence(tokens: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tokens).settings(RunSettings)
    assert sentence in str(caught.value)


def test_published_yaml_reads_back_without_secrets() -> None:
    url = f"++{KNOBS}.agent_base_url=http://somewhere:1"
    config = load([SEED, url, "+policy_api_key=sk-12345678", "+policy_model_name=sk-12345678"], implementations=KNOWN)
    placed = config.placed({name: 4000 + index for index, name in enumerate(config.servers)}, 4999)
    assert "sk-12345678" not in repr(placed)
    text = placed.to_yaml()
    assert "sk-12345678" not in text
    there = Config.published(text, "http://127.0.0.1:4999")
    assert {name: server.url for name, server in there.servers.items()} == {
        name: server.url for name, server in placed.servers.items()
    }
    assert there.servers["remote_agent"].settings["agent_base_url"] == "http://somewhere:1"
    assert there.head.port == 4999
    assert there.environment_server_of("remote_agent").url == placed.environment_server_of("remote_agent").url


def test_a_neighbours_configuration_passes_with_what_we_do_not_know() -> None:
    text = (
        "ray_thing: {a: 1}\npolicy_model:\n  responses_api_models:\n    openai_model:\n      entrypoint: app.py\n"
        "      host: 127.0.0.1\n      port: 10001\n      openai_api_key: ${oc.env:THEIR_KEY}\n"
    )
    config = Config.published(text, "http://127.0.0.1:11000")
    assert config.server("policy_model", "responses_api_models").url == "http://127.0.0.1:10001"
