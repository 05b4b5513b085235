"""A run that begins where another one stands: nothing of it is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.store import Store
from gymkit.errors import StoreError
from tests.collect.world import read


def run(output: Path, mark: str, *, results: int = 1) -> Artifacts:
    with Store(output) as store:
        store.begin([{"plan": mark}])
        for number in range(results):
            store.append_result({mark: number})
        store.append_failure({"failed": mark})
        store.write_metrics([{"metrics": mark}])
    return store.paths


def test_a_run_that_begins_anew_keeps_all_files_of_the_one_before(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, "first", results=3)
    before = [path.read_bytes() for path in sorted(tmp_path.glob("r*"))]
    run(output, "second")
    assert [path.read_bytes() for path in sorted((tmp_path / "previous").iterdir())] == before
    assert read(output) == [{"second": 0}]


def test_the_latest_one_is_kept_whole_and_not_mixed_with_the_one_before(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, "first")
    second = run(output, "second")
    second.metrics.unlink()  # as an interrupted run has none
    run(output, "third")
    kept = Artifacts.of(tmp_path / "previous" / "r.jsonl")
    assert (read(kept.rollouts), read(kept.materialized)) == ([{"second": 0}], [{"plan": "second"}])
    assert not kept.metrics.exists()


def test_a_run_without_a_result_takes_no_good_ones_place(tmp_path: Path) -> None:
    """The agent was down: that run is worth nothing, and the one before it may have taken hours."""
    output = tmp_path / "r.jsonl"
    run(output, "good")
    run(output, "down", results=0)
    run(output, "good again")
    assert read(tmp_path / "previous" / "r.jsonl") == [{"good": 0}]


def test_what_cannot_be_kept_is_not_cleared(tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    run(output, "first")
    (tmp_path / "previous").write_text("a file of the user's")
    with pytest.raises(StoreError, match=r"r\.jsonl holds a run and .* cannot keep it: .*; take another path"):
        run(output, "second")
    assert read(output) == [{"first": 0}]
