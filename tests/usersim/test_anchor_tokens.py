"""Token ids of the assistant beside NeMo Gym 0.7.0: asked for over the same wire, on rows as its trainers read them.

Opt in as in ``test_anchor``.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import httpx
import pytest
import yaml

pytest.importorskip("usersim")

from gymkit.config import load
from gymkit.sdk.catalogue import KNOWN
from gymkit.sdk.configured import build
from gymkit.servers.app import ServerApp
from gymkit.servers.hosting import bind, serve_all, url_of
from gymkit.servers.route import Route
from gymkit.wire import codec
from tests.usersim import parity
from tests.usersim.house import row_of
from tests.usersim.test_anchor import ASSISTANT, PYTHON, RESOURCES, SUPPORT, USER, _lines, _request, _their_environment
from tests.usersim.test_training import block, configured

pytestmark = [pytest.mark.anchor, pytest.mark.skipif(PYTHON is None, reason="GYMKIT_ANCHOR_PYTHON is not set")]


def test_their_environment_server_has_the_same_calls_recorded_as_ours(tmp_path: Path) -> None:
    """The agents are ours and have no switch of their own: either environment server asks the assistant for tokens."""
    with parity.services() as services:
        told = yaml.safe_load(parity.configuration(services.urls, tmp_path / "calls"))
        told["token_id_capture"] = {"enabled": True, "dir": str(tmp_path / "tokens")}
        told[ASSISTANT]["responses_api_agents"]["simple_agent"]["token_id_capture"] = True
        asking = yaml.safe_dump(told)
        del told[ASSISTANT]["responses_api_agents"]["simple_agent"]["token_id_capture"]
        told[USER]["responses_api_agents"]["simple_agent"]["token_id_capture"] = True  # is of no effect
        asyncio.run(_in_front(asking, _apps(tmp_path, yaml.safe_dump(told))))
        asyncio.run(_whole(_apps(tmp_path, asking)))
    for name in ("theirs", "ours"):
        assert len(_lines(tmp_path / "tokens" / f"{name}.tokens.jsonl")) == 4
        recorded = _lines(tmp_path / "calls" / f"{name}.capture.jsonl")
        trained = {each["model_ref"]["name"] for each in recorded if each.get("token_capture")}
        assert trained == {"policy_model"}
        assert {each["model_ref"]["name"] for each in recorded} == {"policy_model", "user_model", "support_model"}


def _apps(tmp_path: Path, text: str) -> dict[str, ServerApp]:
    (tmp_path / "config.yaml").write_text(text)
    return build(load([f"+config_paths=[{tmp_path / 'config.yaml'}]"], implementations=KNOWN))


async def _in_front(text: str, apps: dict[str, ServerApp]) -> None:
    listeners = {name: bind("127.0.0.1", 0) for name in (RESOURCES, USER, ASSISTANT, SUPPORT)}
    served = asyncio.create_task(serve_all([(apps[name], each) for name, each in listeners.items()], lambda: None))
    theirs = _their_environment(text, {name: url_of(each) for name, each in listeners.items()})
    url = await asyncio.to_thread(theirs.__enter__)
    try:
        async with httpx.AsyncClient(timeout=120) as client:
            reply = await client.post(f"{url}/run", json=_request("theirs", row_of("tool_calling")))
            assert reply.raise_for_status().json()["failure"] is None
    finally:
        await asyncio.to_thread(theirs.__exit__, None, None, None)
        served.cancel()
        await asyncio.gather(served, return_exceptions=True)
        for app in apps.values():
            await app.aclose()


async def _whole(apps: dict[str, ServerApp]) -> None:
    route = Route.to_app("environment", apps["nemo_user_sim_environment"])
    try:
        reply = await route.post("/run", _request("ours", row_of("tool_calling")))
        assert reply.expect_ok().json_object()["failure"] is None
    finally:
        for app in apps.values():
            await app.aclose()


READER = """
import asyncio, json, sys
from pathlib import Path
from nemo_gym.token_id_capture import TokenCaptureStore
from nemo_gym.token_id_capture.builder import assert_prefix_contiguity
from nemo_gym.token_id_capture.delivery import finalize_rollout_token_capture
row = json.loads(Path(sys.argv[1]).read_bytes())
assert_prefix_contiguity(row["response"])
store = TokenCaptureStore(Path(sys.argv[2]))
kept = json.dumps(row)
asyncio.run(finalize_rollout_token_capture(row, store))
left = json.dumps(row) == kept
ours, said = row.pop("response"), json.dumps(row["invocations"])
asyncio.run(finalize_rollout_token_capture(row, store))
same = {name: row["response"][name] == ours[name] for name in ("id", "object")}
items = all(item in ours["output"] for item in row["response"]["output"])
print(json.dumps({"left": left, "untouched": said == json.dumps(row["invocations"]), "items": items, **same}))
"""


def test_their_finaliser_leaves_our_rows_and_makes_the_same_of_what_was_recorded(tmp_path: Path) -> None:
    """It puts a ``response`` on the row and leaves ``invocations`` alone; one with tokens it takes as it is.

    How the calls go on from each other is in records of theirs alone, so that it finds only one of ours to be safe.
    """
    rollouts = configured(tmp_path, block(tmp_path, all_agents=True), probe="tool_calling")
    assert len(rollouts.record(0)["response"]["output"]) == 4
    command = [str(PYTHON), "-W", "ignore", "-c", READER, str(rollouts.path), str(tmp_path / "tokens")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = codec.loads(done.stdout.splitlines()[-1].encode())
    assert told == dict.fromkeys(("left", "untouched", "items", "id", "object"), True)
