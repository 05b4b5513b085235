"""NeMo Gym 0.7.0's servers of simulated users beside ours: the same rows and models, the same episodes and verdicts.

Opt in with ``GYMKIT_ANCHOR_PYTHON``, a Python that has ``nemo-gym`` 0.7.0 and, for what is played there, ``usersim``
0.2 from PyPI. Their servers run as they are installed, from our YAML; nothing of theirs is imported here.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
import yaml

pytest.importorskip("usersim")

from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.config import load
from gymkit.sdk.catalogue import KNOWN
from gymkit.sdk.configured import build
from gymkit.sdk.rollouts import Rollouts
from gymkit.servers.agent import Activation
from gymkit.servers.app import ServerApp
from gymkit.servers.hosting import bind, serve_all, url_of
from gymkit.servers.http import Answer
from gymkit.servers.route import Route
from gymkit.testing import usersim as scripted
from gymkit.usersim.digest import digest_of
from gymkit.usersim.environment import NemoUserSim, NemoUserSimConfig, PackageStage
from gymkit.usersim.task import materialized
from gymkit.wire import codec
from tests.bench.anchor import alone, anchored
from tests.usersim import parity
from tests.usersim.compared import comparable, differences
from tests.usersim.differences import DIFFERENCES
from tests.usersim.house import House, row_of

PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON")
REVISION = "a5f676bf6dc5a73914c8a0860f97c10dd2c214ee"
THEIRS = (
    "environment_servers/nemo_user_sim",
    "resources_servers/nemo_user_sim",
    "responses_api_models/vllm_model",
    "responses_api_agents/simple_agent",
)
ENVIRONMENT = "nemo_user_sim_environment"
RESOURCES = "nemo_user_sim_resources"
USER, ASSISTANT, SUPPORT = "nemo_user_sim_user", "nemo_user_sim_assistant", "support_model"

pytestmark = [pytest.mark.anchor, pytest.mark.skipif(PYTHON is None, reason="GYMKIT_ANCHOR_PYTHON is not set")]

OURS = {"gymkit"}
STAMPS = {"_ng_environment_server", "_ng_result_type", "_ng_rollout_index", "_ng_task_id", "_ng_task_index"}

Replies = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Both:
    """The same episodes, played by either side, and what was recorded of their model calls."""

    ours: Replies
    theirs: Replies
    our_calls: Path
    their_calls: Path

    def unexplained(self, name: str) -> list[tuple[str, Any, Any]]:
        """In what the two replies differ, beside what is on the list."""
        return unexplained(name, self.ours[name], self.theirs[name])


def unexplained(name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    found = differences(comparable(ours), comparable(theirs))
    return [each for each in found if not any(known.covers(name, each[0]) for known in DIFFERENCES)]


def _request(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {"episode_id": {"rollout_id": name.replace("_", "-"), "attempt": 0}, "task": materialized(row)}


@pytest.fixture(scope="module")
def playable() -> None:
    found = subprocess.run([str(PYTHON), "-c", "import usersim"], capture_output=True, timeout=120)
    if found.returncode:
        pytest.skip("the Python of GYMKIT_ANCHOR_PYTHON has no usersim")


@pytest.fixture(scope="module")
def both(playable: None, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("parity")
    rows, captured = parity.rows(), (folder / "ours", folder / "theirs")
    with parity.services() as services:
        ours = asyncio.run(_play_here(rows, services, parity.configuration(services.urls, captured[0]), folder))
        # Ray's sockets lie under the folder, and their paths may have 107 bytes.
        text = parity.configuration(services.urls, captured[1])
        with TemporaryDirectory() as short, anchored(Path(str(PYTHON)), Path(short), text, THEIRS) as running:
            found = httpx.get(f"http://127.0.0.1:{running.head_port}/server_instances").json()
            url = next(each["url"] for each in found if each["process_name"] == ENVIRONMENT)
            theirs = {}
            for name, row in rows.items():
                reply = httpx.post(f"{url}/run", json=_request(name, row), timeout=300)
                theirs[name] = {**reply.raise_for_status().json(), "judged": services.judgements()}
    return Both(ours, theirs, *captured)


async def _play_here(rows: Replies, services: parity.Services, text: str, folder: Path) -> Replies:
    (folder / "ours.yaml").write_text(text)
    apps = build(load([f"+config_paths=[{folder / 'ours.yaml'}]"], implementations=KNOWN))
    route, told = Route.to_app(ENVIRONMENT, apps[ENVIRONMENT]), {}
    try:
        for name, row in rows.items():
            reply = await route.post("/run", _request(name, row))
            told[name] = {**reply.expect_ok().json_object(), "judged": services.judgements()}
    finally:
        for app in apps.values():
            await app.aclose()
    return told


def test_the_14_rows_are_the_same_episodes_and_verdicts(both: Both) -> None:
    probes = [name for name in both.ours if name not in {case.name for case in parity.CASES}]
    assert len(probes) == 14
    assert {name: both.unexplained(name) for name in probes} == {name: [] for name in probes}
    assert all(both.ours[name]["judged"] for name in probes), "what the judge was asked is compared as well"
    assert [both.theirs[name]["result"]["mask_sample"] for name in probes] == [False] * 14
    rewards = {name: both.theirs[name]["result"]["reward"] for name in probes}
    assert rewards == {name: 0.0 if name == "financial_services" else 1.0 for name in probes}


@pytest.mark.parametrize("name", [case.name for case in parity.CASES])
def test_what_goes_otherwise_goes_so_on_either_side(both: Both, name: str) -> None:
    assert both.unexplained(name) == []


@pytest.mark.parametrize(
    ("name", "reward", "mask", "kind"),
    [
        ("assistant_calls_nothing_offered", 0.0, False, "usersim:assistant_activation_error"),
        ("judge_refuses", 0.0, True, "judge_failed"),
        ("judge_is_severe", 2 / 3, False, None),
        ("scorer_says_no", 0.0, False, None),
        ("scorer_refuses", 0.0, True, "verifier_error"),
        ("scorer_cannot_tell", 0.0, True, "usersim:scorer_inconclusive"),
        ("finance_dynamic", 1.0, False, None),
        ("two_calls", 1.0, False, None),
        ("offered_underneath", 1.0, False, None),
    ],
)
def test_the_cases_are_what_they_are_called(both: Both, name: str, reward: float, mask: bool, kind: str | None) -> None:
    for reply in (both.ours[name], both.theirs[name]):
        told = reply["result"]
        assert (told["reward"], told["mask_sample"], told["failure_kind"]) == (pytest.approx(reward), mask, kind)


def test_nothing_idle_stands_on_the_list(both: Both) -> None:
    found = {
        (name, path)
        for name in both.ours
        for path, *_ in differences(*map(comparable, (both.ours[name], both.theirs[name])))
    }
    assert [known.why for known in DIFFERENCES if not any(known.covers(*each) for each in found)] == []


def test_the_same_model_calls_are_recorded(both: Both) -> None:
    """Of every role and of the verifier, under the rollout's name; what was refused they ask again, and we do not."""
    refused = {case.name for case in parity.CASES if "refuse" in case.name} | {"guarded", "another_revision"}
    for name in both.ours.keys() - refused:
        assert _calls(both.our_calls, name) == _calls(both.their_calls, name), name
    assert set(_calls(both.our_calls, "tool_calling")) == {"policy_model", "user_model", "support_model"}


def _calls(folder: Path, name: str) -> Counter[str]:
    records = _lines(folder / f"{name.replace('_', '-')}.capture.jsonl")
    return Counter(each["model_ref"]["name"] for each in records)


class Answering(SimpleAgent):
    """An assistant whose answer is ``said``."""

    said: tuple[bytes, int]

    async def respond(self, activation: Activation[Any]) -> Answer:
        return Answer(*self.said)


ANSWERS = {
    **{str(status): (b'{"detail": "no"}', status) for status in (400, 422, 404, 409, 429, 500)},
    "no_response": (b'{"not": "a response"}', 200),
    "no_json": (b"<html>", 200),
}
MEASURED = ("400", "422", "no_response", "no_json")


def test_whose_fault_an_assistants_answer_is(playable: None, tmp_path: Path) -> None:
    """Their environment server in front of our agents, models and verifier: with ours there, the same comes out."""
    with parity.services() as services:
        text = parity.configuration(services.urls, tmp_path / "calls")
        (tmp_path / "ours.yaml").write_text(text)
        told = asyncio.run(
            _answers(text, build(load([f"+config_paths=[{tmp_path / 'ours.yaml'}]"], implementations=KNOWN)))
        )
    for name, (ours, theirs) in told.items():
        assert unexplained("assistant_answers", ours, theirs) == [], name
        assert (theirs["failure"] is None) == (name in MEASURED), name
        if name in MEASURED:
            assert theirs["result"]["failure_kind"] == "usersim:assistant_activation_error"


async def _answers(text: str, apps: dict[str, ServerApp]) -> dict[str, tuple[Any, Any]]:
    """What either environment server makes of each of ``ANSWERS``."""
    await apps[ASSISTANT].aclose()
    agent = Answering(
        ASSISTANT, SimpleAgentConfig(max_steps=1, execute_tools=False), Route.to_app("none", apps[SUPPORT])
    )
    apps[ASSISTANT] = agent
    listeners = {name: bind("127.0.0.1", 0) for name in (RESOURCES, USER, ASSISTANT, SUPPORT)}
    served = asyncio.create_task(serve_all([(apps[name], each) for name, each in listeners.items()], lambda: None))
    routes = {name: Route.to_url(name, url_of(each)) for name, each in listeners.items()}
    environment = NemoUserSim(
        ENVIRONMENT,
        NemoUserSimConfig(),
        resources=routes[RESOURCES],
        user=routes[USER],
        assistant=routes[ASSISTANT],
        models=dict.fromkeys(("judge", "summary", "tool_simulation"), routes[SUPPORT]),
        stage=PackageStage({"assistant": scripted.MODEL_NAME}),
    )
    told = {}
    theirs = _their_environment(text, {name: route.url for name, route in routes.items()})
    url = await asyncio.to_thread(theirs.__enter__)
    try:
        async with httpx.AsyncClient(timeout=120) as client:
            for name, agent.said in ANSWERS.items():
                request = _request(f"answers_{name}", row_of("general_open_ended"))
                one = (await Route.to_app(ENVIRONMENT, environment).post("/run", request)).expect_ok().json_object()
                other = (await client.post(f"{url}/run", json=request)).raise_for_status().json()
                told[name] = (_unobserved(one), _unobserved(other))
    finally:
        await asyncio.to_thread(theirs.__exit__, None, None, None)
        served.cancel()
        await asyncio.gather(served, return_exceptions=True)
        for app in (environment, *apps.values()):
            await app.aclose()
    return told


def _unobserved(reply: dict[str, Any]) -> dict[str, Any]:
    """Without what agents observed: theirs tell it with each reply, and ours when their session is closed."""
    for each in (reply["result"] or {}).get("invocations", ()):
        del each["observations"]
    return reply


def _their_environment(text: str, hosted: Mapping[str, str]) -> AbstractContextManager[str]:
    """NeMo Gym's environment server alone, in front of servers that run already."""
    place = "environment_servers/nemo_user_sim"
    return alone(Path(str(PYTHON)), place, yaml.safe_load(text), ENVIRONMENT, hosted)


@pytest.fixture(scope="module")
def folder() -> Path:
    code = "import resources_servers.nemo_user_sim as m; print(list(m.__path__)[0])"
    found = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return Path(found.stdout.strip()) / "data"


def _lines(path: Path) -> list[dict[str, Any]]:
    return [codec.loads(line) for line in path.read_bytes().splitlines()]


def test_digests_are_theirs(folder: Path) -> None:
    theirs = {row["_ng_task_id"]["task_id"]: row for row in _lines(folder / "example_rollouts.jsonl")}
    for row in _lines(folder / "example.jsonl"):
        recorded = theirs[row["task_id"]]["verification"]["verifier_data"]["resolved_row_sha256"]
        assert digest_of(row["resolved_row"]) == recorded


def test_their_rows_play_here_and_the_result_has_their_shape(folder: Path) -> None:
    """What we add: ``gymkit``, ``seconds`` of an invocation, ``user_audit``, and ``retrieval`` where documents are."""
    theirs = {row["_ng_task_id"]["task_id"]: row for row in _lines(folder / "example_rollouts.jsonl")}
    for row in _lines(folder / "example.jsonl"):
        result = House(resources_config={"usersim_revision": REVISION}).result(row)
        recorded = theirs[row["task_id"]]
        assert set(recorded) - STAMPS == set(result) - OURS
        assert set(recorded["reward_components"]) == set(result["reward_components"])
        assert set(result["invocations"][0]) - set(recorded["invocations"][0]) == {"seconds"}
        assert set(result["usersim_result"]) - set(recorded["usersim_result"]) <= {"retrieval"}
        data = set(result["verification"]["verifier_data"])
        assert data - set(recorded["verification"]["verifier_data"]) == {"user_audit"}


def test_their_rollouts_have_our_frames(folder: Path) -> None:
    run = Rollouts.read(folder / "example_rollouts.jsonl")
    assert list(run.outcomes["reward"]) == list(run.rewards["reward"])
    assert set(run.conversations["role"]) >= {"user", "assistant"}
    assert run.invocations["input_tokens"].notna().all()
    assert len(run.audit) == 0
