"""A folder with the seed's YAML, and what is known of the implementations in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gymkit.agents.remote import RemoteAgentConfig
from gymkit.config import Implementation

SEED_YAML = """\
# counter_remote.yaml
example_session_state_mgmt_resources_server:
  resources_servers:
    example_session_state_mgmt:
      entrypoint: app.py
      domain: agent

remote_agent:
  responses_api_agents:
    remote_agent:
      entrypoint: app.py
      # Your service's address
      agent_base_url: http://your-agent-host:9000
      resources_server:
        type: resources_servers
        name: example_session_state_mgmt_resources_server # the top-level key above
      concurrency: 4
      max_steps: 8
"""

KNOWN = {
    ("responses_api_agents", "remote_agent"): Implementation(
        RemoteAgentConfig, {"resources_server": "resources_servers"}
    )
}

Write = Callable[[str, str], str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of each test: empty but for the seed's file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEMO_GYM_EXTRA_ROOTS", raising=False)
    (tmp_path / "counter_remote.yaml").write_text(SEED_YAML)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """Write a file beside it; returns the token that includes it."""

    def write(name: str, text: str) -> str:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return f"+config_paths=[{name}]"

    return write
