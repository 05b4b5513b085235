"""The live panel in a real JupyterLab: it counts, Stop works while the cell runs, and what stays needs no widget."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser.conftest import OpenNotebook
from tests.browser.lab import Lab, Notebook, Theme

pytestmark = pytest.mark.browser

PREPARE = """
import asyncio
import gymkit as gk
from gymkit.servers.hosting import serve
from gymkit.testing.agent import ScriptedAgent, answer, call, outputs

async def slow_adder(params):
    await asyncio.sleep(0.05)
    numbers = [int(word) for word in params["input"][0]["content"].split() if word.isdigit()]
    done = len(outputs(params))
    return [call("increment_counter", f"c{done}", count=numbers[done])] if done < len(numbers) else [answer("done")]

hosted = serve(ScriptedAgent(slow_adder))
env, agent = gk.Env("counter"), gk.RemoteAgent(hosted.url, concurrency=2)
"""
PLAIN = 'env.rollouts(agent, repeats=200, output="{}/r.jsonl").outcome'
AWAITED = '(await env.arollouts(agent, repeats=200, output="{}/r.jsonl")).outcome'
DONE = re.compile(r"(\d+) of 1,000")


def done(notebook: Notebook) -> int:
    """What the panel says is done; the panel may be redrawn meanwhile."""
    found = DONE.search(notebook.output(1).inner_text())
    return int(found[1]) if found else 0


def wait_for_count(notebook: Notebook, number: int) -> None:
    """Wait until the panel has counted to ``number`` or a little further."""
    numbers = "|".join(str(number + further) for further in range(100))
    notebook.wait_text(1, rf"\b({numbers}) of 1,000")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_panel_counts_and_stop_works_while_the_cell_runs(
    notebook: OpenNotebook, theme: Theme, tmp_path: Path
) -> None:
    open_ = notebook([PREPARE, PLAIN.format(tmp_path)], theme=theme)
    open_.run(0)
    open_.wait_done(0)
    open_.run(1)
    wait_for_count(open_, 3)
    first = done(open_)
    wait_for_count(open_, first + 3)
    open_.page.screenshot(path=tmp_path / f"running-{theme}.png")

    panel = open_.output(1)
    assert panel.get_by_role("progressbar", name="rollouts done").get_attribute("aria-valuemax") == "1000"
    stop = panel.get_by_role("button", name="Stop")
    stop.focus()
    open_.page.keyboard.press("Enter")  # a keyboard is enough
    open_.wait_done(1, 20_000)
    panel.get_by_text(re.compile("stopped after 0:.* not run")).wait_for()
    assert stop.count() == 0
    assert 6 <= done(open_) < 900
    assert "stopped=True" in panel.inner_text()
    open_.page.screenshot(path=tmp_path / f"stopped-{theme}.png")

    saved = open_.save()
    final = saved["cells"][1]["outputs"][0]["data"]
    assert set(final) == {"text/html", "text/plain"}
    assert "stopped after" in "".join(final["text/plain"])
    assert "widgets" not in saved["metadata"]


@pytest.mark.parametrize(("comms", "cell"), [("disabled", PLAIN), ("perCommTarget", AWAITED)])
def test_stop_works_without_subshells_and_in_an_awaiting_cell(
    notebook: OpenNotebook, lab: Lab, tmp_path: Path, comms: str, cell: str
) -> None:
    """Other front ends know no subshells; JupyterLab may be told not to use them."""
    lab.set("apputils-extension:kernels-settings", commsOverSubshells=comms)
    open_ = notebook([PREPARE, cell.format(tmp_path)])
    open_.run(0)
    open_.wait_done(0)
    open_.run(1)
    wait_for_count(open_, 2)
    open_.output(1).get_by_role("button", name="Stop").click()
    open_.wait_done(1, 20_000)
    assert 2 <= done(open_) < 900


def test_an_interrupt_of_the_kernel_keeps_the_last_facts_and_the_rollouts(
    notebook: OpenNotebook, tmp_path: Path
) -> None:
    open_ = notebook([PREPARE, f"rollouts = {PLAIN.removesuffix('.outcome').format(tmp_path)}; len(rollouts)"])
    open_.run(0)
    open_.wait_done(0)
    open_.run(1)
    wait_for_count(open_, 2)
    open_.command("notebook:interrupt-kernel")
    open_.wait_done(1, 20_000)
    open_.output(1).get_by_text(re.compile("stopped after 0:.* not run")).wait_for()
    assert "1000" in open_.output(1).inner_text().splitlines()[-1]


def test_a_script_in_a_transcript_does_not_run(notebook: OpenNotebook, tmp_path: Path) -> None:
    show = """
import pandas as pd
from gymkit.views.transcript import Transcript
hostile = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
Transcript(pd.DataFrame({"kind": "message", "role": [hostile, "user"], "text": [hostile, "\\u202eabc\\x1b[31m"]}))
"""
    open_ = notebook([show])
    open_.run(0)
    open_.wait_done(0)
    shown = open_.output(0).locator(".gk-transcript").inner_text()
    assert "<script>window.hacked = 1</script><img" in shown
    assert "⟨U+202E⟩abc⟨ESC⟩[31m" in shown
    assert open_.output(0).locator("script, img").count() == 0
    assert open_.page.evaluate("window.hacked") is None
    open_.page.screenshot(path=tmp_path / "hostile.png")
