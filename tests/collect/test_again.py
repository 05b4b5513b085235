"""Running chosen rollouts again: their results move to the sidecar, the others stay, nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.collect.store import SET_ASIDE, Store
from gymkit.errors import StoreLocked


def row(task: int, **fields: Any) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": 0, "reward": 0.5, **fields}


@given(st.lists(st.booleans(), max_size=12))
def test_chosen_results_move_and_the_rest_stay_in_order(chosen: list[bool]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "r.jsonl") as store:
        for task, _ in enumerate(chosen):
            store.append_result(row(task, text="\u2028"))
        store.set_aside(lambda each: chosen[each["_ng_task_index"]])
        assert [line.row for line in store.results()] == [row(t, text="\u2028") for t, c in enumerate(chosen) if not c]
        moved = [line.row for line in store.failed()]
        assert [each["_ng_task_index"] for each in moved] == [t for t, c in enumerate(chosen) if c]
        assert all(each["_ng_failure_class"] == SET_ASIDE and each["reward"] == 0.5 for each in moved)
        store.append_result(row(99))
        assert [line.row["_ng_task_index"] for line in store.results()][-1] == 99, "what follows goes to the new file"


def test_the_lock_is_held_throughout(tmp_path: Path) -> None:
    with Store(tmp_path / "r.jsonl") as store:
        store.append_result(row(0))
        store.set_aside(lambda each: True)
        with pytest.raises(StoreLocked), Store(tmp_path / "r.jsonl"):
            pass
    with Store(tmp_path / "r.jsonl") as store:
        assert list(store.results()) == []
