"""What ``rollouts.rewards?`` shows is what the frame has."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

import gymkit as gk

FRAMES = [
    "rewards",
    "masks",
    "trajectories",
    "tool_calls",
    "failures",
    "conversations",
    "invocations",
    "model_calls",
    "turns",
    "gaps",
    "outcomes",
    "audit",
]


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_tells_its_columns_and_dtypes(name: str) -> None:
    text = " ".join((inspect.getdoc(getattr(gk.Rollouts, name)) or "").split())
    told = text.partition("Columns after the three ids: ")[2].removesuffix(".")
    groups = [re.fullmatch(r"(\S+(?: UTC\])?) (.*)", group) for group in told.split("; ")]
    found = {column: group[1] for group in groups if group for column in re.findall(r"``([\w.]+)``", group[2])}
    columns = import_module(f"gymkit.frames.{name}").COLUMNS
    assert found == {column.name: column.dtype for column in columns[3:]}
    assert [column.name for column in columns[:3]] == ["task_index", "rollout_index", "attempt"]


def test_no_frame_is_forgotten() -> None:
    frames = {name for name, each in vars(gk.Rollouts).items() if _returns(each) == "pd.DataFrame"}
    assert frames == {*FRAMES, "tasks"}


def _returns(member: object) -> str:
    function = getattr(member, "func", None)
    return str(getattr(function, "__annotations__", {}).get("return"))
