"""The browsers of a run in a real JupyterLab: keys, filters, size, hostility, and what stays without a kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import OpenNotebook
from tests.browser.lab import PAGE_LOAD_MS, Lab, Notebook, Theme
from tests.frames.samples import Row, call, message, our_failure, ours, output, planned, write_run

pytestmark = pytest.mark.browser

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\x1b[31m\u202egnp\u200b"
READ = 'import gymkit as gk; rollouts = gk.Rollouts.read("{}"); view = rollouts.view(); view'
LIVE = ".gk-browser"  # not its static copy, which is there too and hidden
OPEN_ROW = ".gk-rows tr[aria-selected=true]"


def run(folder: Path, answer: Callable[[int, int], str] = lambda task, rollout: f"I am {task}.{rollout}") -> Path:
    """Thirty tasks, two rollouts each; task 3 failed, rewards go round 0, 0.5, 1, and every answer is hostile too."""
    folder.mkdir(exist_ok=True)
    keys = [(task, rollout) for task in range(30) for rollout in range(2)]
    results = [
        ours(*key, reward=(sum(key) % 3) / 2, items=[call("c"), output("c"), message(answer(*key) + HOSTILE)])
        for key in keys
        if key[0] != 3
    ]
    failures = [our_failure(3, rollout, error=HOSTILE, failure_kind="timeout") for rollout in range(2)]
    return write_run(folder, results, failures=failures, plan=[planned(*key) for key in keys])


def opened(notebook: Notebook) -> None:
    """Run the first cell and wait until keys work."""
    notebook.page.set_viewport_size({"width": 1500, "height": 1000})
    notebook.run(0)
    notebook.wait_done(0)
    notebook.page.locator(".gk-browser[data-wired]").wait_for()


def wait_for_row(notebook: Notebook, task: int, rollout: int) -> None:
    """Wait until a rollout is open, in the table and beside it."""
    notebook.page.locator(LIVE).locator(".gk-head", has_text=f"task {task} · rollout {rollout}").wait_for()
    notebook.page.locator(OPEN_ROW, has_text=f"{task}").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_run_is_filtered_and_read_with_keys_alone(notebook: OpenNotebook, theme: Theme, tmp_path: Path) -> None:
    cells = [READ.format(run(tmp_path / "run")), "view.selection[['task_index', 'rollout_index']].values.tolist()"]
    open_ = notebook(cells, theme=theme)
    opened(open_)
    page, live, keyboard = open_.page, open_.page.locator(LIVE), open_.page.keyboard
    page.get_by_role("grid", name="rows, the open one is read beside").focus()
    keyboard.press("j")
    keyboard.press("ArrowDown")
    wait_for_row(open_, 1, 0)
    page.screenshot(path=tmp_path / f"browser-{theme}.png")
    for _ in range(40):  # faster than Python draws: what is between is skipped, and the last one counts
        keyboard.press("j")
    wait_for_row(open_, 21, 0)
    live.get_by_text("26 to 50 of 60").wait_for()
    keyboard.press("k")
    wait_for_row(open_, 20, 1)

    keyboard.press("/")
    keyboard.type("rewrd == 1")
    keyboard.press("Enter")
    page.get_by_role("status").get_by_text("there is no column rewrd; did you mean 'reward'?").wait_for()
    keyboard.press("Control+A")
    keyboard.type("failure_kind == 'timeout'")
    keyboard.press("Enter")
    page.get_by_role("status").get_by_text("2 of 60 rows match").wait_for()
    keyboard.press("Escape")
    keyboard.press("End")
    wait_for_row(open_, 3, 1)
    keyboard.press("x")
    page.locator(".gk-rows tr.gk-marked").wait_for()
    keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.gk-body') !== null")
    live.get_by_text("<script>window.hacked = 1</script>").first.wait_for()

    open_.run(1)
    open_.wait_text(1, r"\[\[3, 1\]\]")
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == 2, "x is JupyterLab's key for cutting a cell"
    assert page.evaluate("window.hacked") is None


def test_a_cell_moves_the_view_and_clicks_reach_it(notebook: OpenNotebook, tmp_path: Path) -> None:
    open_ = notebook([READ.format(run(tmp_path / "run")), "view.select(29, 1)", "view.query = 'reward == 1'; view"])
    opened(open_)
    open_.run(1)
    open_.wait_done(1)
    wait_for_row(open_, 29, 1)
    page, live = open_.page, open_.page.locator(LIVE)
    page.locator(".gk-rows th").get_by_role("button", name="reward").click()
    page.locator(".gk-rows th[aria-sort=ascending]").wait_for()
    page.locator(".gk-rows tr[data-row='2']").click()
    live.locator(".gk-head", has_text="reward 0").wait_for()
    page.get_by_role("button", name="Raw JSON").click()
    page.locator(".gk-body").get_by_text('"responses_create_params"').first.wait_for()
    page.get_by_role("checkbox", name="failed 2").click()
    page.get_by_role("status").get_by_text("58 of 60 rows match").wait_for()
    open_.run(2)  # the same view again: both are drawn, and keys work in both
    open_.wait_done(2)
    page.locator(".gk-browser[data-wired]").nth(1).wait_for()


def test_a_trajectory_of_100_megabytes_is_turned_page_by_page(notebook: OpenNotebook, tmp_path: Path) -> None:
    log = "one line of a log that goes on and on\n" * 2_750
    items: list[Row] = [item for number in range(1_000) for item in (call(f"c{number}"), output(f"c{number}", log))]
    path = write_run(tmp_path, [ours(0), ours(1, items=[*items, message("That was long.")])])
    assert path.stat().st_size > 100_000_000
    open_ = notebook([READ.format(path), "view.select(1)"])
    opened(open_)
    open_.run(1)
    open_.wait_done(1)
    page, live = open_.page, open_.page.locator(LIVE)
    live.get_by_text("entries 1 to 2 of 1,002").wait_for()
    page.locator(".gk-body .widget-html-content").focus()
    page.keyboard.press("n")
    live.get_by_text("entry 2 of 1,002").wait_for()
    page.keyboard.press("n")
    live.get_by_text("page 3 of ").wait_for()
    assert page.evaluate("document.querySelector('.gk-body').innerHTML.length") < 100_000
    page.screenshot(path=tmp_path / "long.png")


def test_two_runs_are_read_side_by_side(notebook: OpenNotebook, tmp_path: Path) -> None:
    one, other = run(tmp_path / "a"), run(tmp_path / "b", lambda task, rollout: f"I was {task}.{rollout}")
    cell = f'import gymkit as gk; gk.Rollouts.read("{one}").compare(gk.Rollouts.read("{other}")).view()'
    open_ = notebook([cell])
    opened(open_)
    page, live = open_.page, open_.page.locator(LIVE)
    live.get_by_text("▼ the first difference").wait_for()
    assert [mark[:4] for mark in live.locator("mark.gk-differs").all_inner_texts()] == ["am 0", "was "]
    page.get_by_role("button", name="next ›").click()
    live.locator(".gk-head", has_text="task 1 · ").wait_for()
    page.screenshot(path=tmp_path / "side-by-side.png")
    assert page.evaluate("window.hacked") is None


def test_without_its_kernel_a_saved_notebook_shows_the_same_facts(
    notebook: OpenNotebook, lab: Lab, tmp_path: Path
) -> None:
    """A front end that finds no kernel for a widget shows an error in its place; so there is a copy that needs none."""
    open_ = notebook([READ.format(run(tmp_path / "run"))])
    opened(open_)
    copy = open_.page.locator(".gk-static")
    assert not copy.is_visible()
    saved = open_.save()
    assert "widgets" not in saved["metadata"]
    open_.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    open_.page.goto(f"{lab.url}/doc/tree/{open_.name}?reset", timeout=PAGE_LOAD_MS)
    open_.wait_ready(PAGE_LOAD_MS)
    copy.wait_for()
    error = open_.page.get_by_text("Error displaying widget: model not found")
    error.wait_for(state="attached")
    error.wait_for(state="hidden")
    text = copy.inner_text()
    assert "25 of 60 rollouts" in text
    assert "<script>window.hacked = 1</script>" in text
    assert open_.page.evaluate("window.hacked") is None
    open_.page.screenshot(path=tmp_path / "saved.png")
