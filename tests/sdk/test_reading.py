"""From the files of a run to its views: what the sdk hands over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from tests.frames.samples import message, our_failure, ours, planned, write_run
from tests.views.parsed import Parsed
from tests.views.touch import Touch


def run(folder: Path, *rewards: float, **more: Any) -> gk.Rollouts:
    """One rollout a task with these rewards; the task after the last failed, and the one after that is missing."""
    folder.mkdir(exist_ok=True)
    tasks = range(len(rewards) + 2)
    failed = our_failure(len(rewards), error="no answer in 30 s", failure_kind="timeout")
    results = [ours(task, reward=reward, **more) for task, reward in enumerate(rewards)]
    return gk.Rollouts.read(write_run(folder, results, failures=[failed], plan=[planned(task) for task in tasks]))


def test_a_run_is_looked_through(tmp_path: Path) -> None:
    rollouts = run(tmp_path, 1.0, 0.0, reward_components={"style": 0.5}, note="read twice")
    view = rollouts.view("status != 'scored'")
    touch = Touch(view)
    assert list(view.matches["status"]) == ["failed", "missing"]
    assert "add 7 then add 8" in touch.text("body"), "what a failed attempt was asked"
    assert "no answer in 30 s" in touch.text("head")
    assert "failed attempts: 1" in touch.text("head")
    view.select(1)
    assert "increment_counter tool call, run by gymkit" in touch.text("body")
    assert "reward components: style 0.5" in touch.text("head")
    assert f'gk.Rollouts.read("{rollouts.path}").conversation(1, 0)' in touch.text("head")
    assert view.selection["reward"].tolist() == [0.0]
    view.select(3)
    assert "Missing: planned" in touch.text("head")


def test_two_runs_are_compared_and_their_conversations_read(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", 1.0, 0.0), run(tmp_path / "b", 1.0, 1.0)
    comparison = a.compare(b)
    assert comparison.names == (str(a.path), str(b.path)), "the runs have one title, and it would not tell them apart"
    assert repr(comparison) == repr(comparison.statistics)
    assert comparison["difference"].value == comparison.statistics["difference"].value
    assert list(comparison.flips["task"]) == ["1"]
    view = comparison.view()
    assert list(view.selection["task"]) == ["1"]
    assert "both went the same way" in Touch(view).text("head")
    assert list(comparison.view(task=0).selection["task"]) == ["0"]
    with pytest.raises(gk.GymkitError, match="no row with task 7"):
        comparison.view(task=7)
    assert "All numbers" in Parsed(comparison._repr_html_()).text


def test_a_run_is_drawn(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", 1.0, 0.0), run(tmp_path / "b", 1.0, 1.0)
    assert "2 scored, mean 0.5; 1 failed; 1 missing" in a.plot.rewards().alt
    assert "Rewards of 4 tasks" in a.plot.tasks().alt
    assert "pass@1 0.5" in a.plot.pass_at_k().alt
    assert f"− {b.path} -0.50"[:20] in a.plot.forest(b).alt
    assert "2 reported" in a.plot.costs().alt
    assert "rewards, tasks, pass_at_k, forest, costs" in repr(a.plot)
    with pytest.raises(gk.GymkitError, match="needs a run to compare with"):
        a.plot.forest()


def test_a_run_is_written_as_one_file(tmp_path: Path) -> None:
    rollouts = run(tmp_path, 1.0, 0.0, note="read twice")
    rollouts.to_html(tmp_path / "new" / "report.html")
    page = (tmp_path / "new" / "report.html").read_text("utf-8")
    text = Parsed(page).text
    assert "2 of 4 scored · 1 failed" in text
    assert text.count("increment_counter tool call, run by gymkit") == 6
    assert "no answer in 30 s" in text
    assert "Missing: planned" in text
    with pytest.raises(gk.GymkitError, match="cannot be written"):
        rollouts.to_html(tmp_path)


def test_many_conversations_are_read_at_once_and_each_is_its_own(tmp_path: Path) -> None:
    """More than one batch, and one conversation that is larger than a batch may be."""
    results = [
        ours(task, items=[message(f"I am {task}."), message("x" * (20_000_000 * (task == 60)))]) for task in range(120)
    ]
    rollouts = gk.Rollouts.read(write_run(tmp_path, results))
    rollouts.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    parts = page.split('gk-rollout"')[1:]
    assert [f"I am {task}." in part for task, part in enumerate(parts)] == [True] * 120
