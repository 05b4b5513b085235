"""NeMo Gym's own example rows: the same digests, the same shape of result. Opt in as the anchor."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("usersim")

from gymkit.sdk.rollouts import Rollouts
from gymkit.usersim.digest import digest_of
from gymkit.wire import codec
from tests.usersim.house import House

PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON")
REVISION = "a5f676bf6dc5a73914c8a0860f97c10dd2c214ee"

pytestmark = [pytest.mark.anchor, pytest.mark.skipif(PYTHON is None, reason="GYMKIT_ANCHOR_PYTHON is not set")]

OURS = {"gymkit"}
STAMPS = {"_ng_environment_server", "_ng_result_type", "_ng_rollout_index", "_ng_task_id", "_ng_task_index"}


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
