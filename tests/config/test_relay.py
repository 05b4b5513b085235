"""Agents without an environment server get a relay, named as NeMo Gym names it."""

from __future__ import annotations

import pytest

from gymkit.config import load
from gymkit.errors import ConfigError
from gymkit.wire.names import relay_name
from tests.config.conftest import KNOWN, Write

SEED = "+config_paths=[counter_remote.yaml]"


@pytest.mark.parametrize(
    ("agent", "implementation", "name"),
    [
        ("remote_agent", "remote_agent", "remote_agent_environment_server"),
        ("workplace_assistant_simple_agent", "simple_agent", "workplace_assistant_environment_server"),
        ("shop_agent", "simple_agent", "shop_environment_server"),
        ("shop", "simple_agent", "shop_environment_server"),
        ("a_simple_agent_simple_agent", "simple_agent", "a_environment_server"),
        ("_agent", "simple_agent", "simple_agent_environment_server"),
    ],
)
def test_name(agent: str, implementation: str, name: str) -> None:
    assert relay_name(agent, implementation) == name


def test_the_seeds_agent_is_fronted() -> None:
    config = load([SEED], implementations=KNOWN)
    assert config.relays == ("remote_agent_environment_server",)
    relay = config.environment_server_of("remote_agent")
    assert (relay.name, relay.implementation, relay.agents) == (*config.relays, "legacy_agent", ["remote_agent"])


def test_an_agent_with_an_environment_server_gets_none() -> None:
    own = "+front.environment_servers.legacy_agent.agent_server.name=remote_agent"
    config = load([SEED, own], implementations=KNOWN)
    assert config.relays == ()
    assert config.environment_server_of("remote_agent").name == "front"


def test_two_environment_servers_are_one_too_many() -> None:
    fronts = [f"+{name}.environment_servers.legacy_agent.agent_server.name=remote_agent" for name in ("one", "two")]
    with pytest.raises(ConfigError, match="several environment servers reference it: one and two"):
        load([SEED, *fronts]).environment_server_of("remote_agent")


def test_a_taken_name_gives_way(write: Write) -> None:
    token = write(
        "taken.yaml",
        "config_paths: [counter_remote.yaml]\nremote_agent_environment_server:\n  resources_servers:\n    counter:\n",
    )
    assert load([token]).relays == ("remote_agent_environment_server_environment_server",)


def test_an_unknown_agent_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'remote_agent'"):
        load([SEED]).environment_server_of("remote_agnt")
