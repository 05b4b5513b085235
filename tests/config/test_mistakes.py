"""A mistake gets one sentence: the file, the key, the nearest right name."""

from __future__ import annotations

import pytest

from gymkit.config import load
from gymkit.errors import ConfigError
from tests.config.conftest import KNOWN, Write

SEED = "+config_paths=[counter_remote.yaml]"
KNOBS = "++remote_agent.responses_api_agents.remote_agent"


def mistake(*tokens: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load([SEED, *tokens], implementations=KNOWN)
    return str(caught.value)


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        ("+limmit=1", "the command line: limmit is not a setting; did you mean 'limit'?"),
        ("limit=1", "no file sets limit, so limit=… has nothing to change; write +limit=… to add it"),
        (
            "remote_agnt=1",
            "no file sets remote_agnt, so remote_agnt=… has nothing to change; did you mean 'remote_agent'?",
        ),
        ("+limit=1,2", "limit gets several values; write limit=[a,b] for a list, or 'limit=\"a,b\"' for a text"),
        ("limit", "the argument 'limit' cannot be read; arguments are +key=value, key=value or a flag such as --limit"),
        ("~remote_agent", "the argument '~remote_agent' is not supported"),
        ("+head_server.prt=3", "head_server.prt is not a setting; did you mean 'port'?"),
        ("+head_server.port=70000", "head_server.port must be a number from 0 to 65535"),
        ("+head_server=3", "head_server must hold host and port"),
        (f"{KNOBS}.concurency=3", "concurency is not a setting of remote_agent; did you mean 'concurrency'?"),
        (f"{KNOBS}.concurrency=0", "remote_agent.concurrency is wrong: input should be greater than 0"),
        (f"{KNOBS}.port=-1", "remote_agent.port must be a number from 0 to 65535"),
        (f"{KNOBS}.host=[a]", "remote_agent.host must be a host name or an address"),
        (f"{KNOBS}.resources_server=null", "remote_agent.resources_server is missing; it names what to use"),
        (f"{KNOBS}.resources_server.type=resource_servers", "is no server type; did you mean 'resources_servers'?"),
        (
            f"{KNOBS}.resources_server.name=example_session_state_mgmt",
            "the command line: remote_agent.resources_server names 'example_session_state_mgmt', but no instance of "
            "resources_servers has that name; did you mean 'example_session_state_mgmt_resources_server'?",
        ),
        (
            f"{KNOBS}.agent_base_url=${{polcy_base_url}}",
            "Interpolation key 'polcy_base_url' not found; there are",
        ),
        (f"{KNOBS}.agent_base_url=${{oc.env:NO_SUCH_VARIABLE}}", "Environment variable 'NO_SUCH_VARIABLE' not found"),
        ("++remote_agent.responses_api_agents.other.x=1", "remote_agent.responses_api_agents must hold exactly one"),
        ("+remote_agent.environment_servers.x.y=1", "remote_agent must hold exactly one server type"),
        ("+helper.response_api_agents.x=1", "helper holds no server type; did you mean 'responses_api_agents'?"),
    ],
)
def test_sentence(token: str, sentence: str) -> None:
    assert sentence in mistake(token)


def test_all_missing_values_are_named_at_once(write: Write) -> None:
    write("holes.yaml", "config_paths: [counter_remote.yaml]\npolicy_base_url: ???\nskills:\n  - path: ???\n")
    with pytest.raises(ConfigError) as caught:
        load(["+config_paths=[holes.yaml]", f"{KNOBS}.agent_base_url=???"])
    for path in ("policy_base_url", "skills[0].path", "remote_agent.responses_api_agents.remote_agent.agent_base_url"):
        assert path in str(caught.value)


def test_the_file_that_sets_the_key_is_named(write: Write) -> None:
    write("inner.yaml", "counter:\n  resources_servers:\n    counter:\n      domain: maths\n")
    token = write(
        "outer.yaml", "config_paths: [inner.yaml]\ncounter:\n  resources_servers:\n    counter: {verified: true}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load([token])
    assert str(caught.value) == (
        "inner.yaml: counter.resources_servers.counter.domain is not one of the domains; did you mean 'math'?"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [1\nb: 2\n", "bad.yaml:2 is not YAML"),
        ("a: 1\na: 2\n", "bad.yaml:2 is not YAML: found duplicate key a"),
        ("- 1\n- 2\n", "bad.yaml must hold a mapping"),
        ("just words\n", "bad.yaml"),
        ("config_paths: other.yaml\n", "config_paths of bad.yaml must be a list of files"),
        (
            "config_paths: [no/such.yaml]\n",
            "config_paths of bad.yaml names no/such.yaml, which does not exist: looked for",
        ),
        ("x: {_inherit_from: y}\n", "x inherits from y, which is not in the configuration"),
        ("x: {_copy: y}\ny: {_copy: x}\n", "which leads back to itself"),
        ("x: {_copy: y, _delete_key: c}\ny: {b: 1}\n", "x._delete_key names c, which is not there"),
        ("x: {_copy: limit}\nlimit: 3\n", "x inherits from something that is not a block"),
        ("seting: 3\n", "bad.yaml: seting is not a setting"),
    ],
)
def test_bad_files(write: Write, text: str, sentence: str) -> None:
    token = write("bad.yaml", text)
    with pytest.raises(ConfigError) as caught:
        load([token])
    assert sentence in str(caught.value)


def test_bytes_that_are_not_text(write: Write, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("bytes") / "latin.yaml"
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError, match=r"is not UTF-8 text \(byte 3\)"):
        load([f"+config_paths=['{path}']"])


@pytest.mark.parametrize(
    "token",
    [
        f"{KNOBS}.agent_base_url=http://user:hunter2hunter2@host",
        f"{KNOBS}.agent_api_key=hunter2hunter2",
        "+api_key=hunter2hunter2",
        "+policy_api_key=hunter2hunter2,b",
        "+policy_api_key={hunter2hunter2",
    ],
)
def test_no_message_shows_a_value(token: str) -> None:
    assert "hunter2" not in mistake(token)
