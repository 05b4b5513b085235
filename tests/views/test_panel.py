"""The panel in a real kernel: what a front end is told, what a click does, what stays in the notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.kernels import Kernel, start_kernel
from tests.views.parsed import Parsed

VIEW = "application/vnd.jupyter.widget-view+json"
PREPARE = """
import asyncio, threading, time
from gymkit.collect.progress import Progress
from gymkit.sdk import bridge
from gymkit.views.progress import live

async def collect(progress, stop, display, number):
    following = asyncio.create_task(display.follow())
    progress.begin(number)
    while progress.done < number and not stop.is_set():
        progress.score(1.0)
        await asyncio.sleep(0.01)
    progress.end()
    following.cancel()

def watched(number):
    progress, stop = Progress(), threading.Event()
    with live(progress, stop=stop.set, title="counter × <agent>") as display:
        bridge.run(collect(progress, stop, display, number))
    return progress.done
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with start_kernel(tmp_path_factory.mktemp("ipython")) as kernel:
        assert kernel.cell(PREPARE) == ""
        yield kernel


class FrontEnd:
    """Keeps what it was sent and presses Stop once the panel has counted to something."""

    def __init__(self, kernel: Kernel, *, press: bool) -> None:
        self._kernel = kernel
        self._press = press
        self.button = ""
        self.comms: set[str] = set()
        self.values: list[str] = []
        self.display: dict[str, Any] = {}
        self.final: dict[str, Any] = {}

    def __call__(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "comm_open":
            self.comms.add(content["comm_id"])
        if kind == "comm_close":
            self.comms.discard(content["comm_id"])
        state = content.get("data", {}).get("state", {}) if kind.startswith("comm") else {}
        if state.get("_model_name") == "ButtonModel":
            self.button = content["comm_id"]
        if 'class="gk-progress"' in (value := str(state.get("value", ""))):
            self.values.append(Parsed(value).text)
        if kind in ("display_data", "update_display_data"):
            self.display, self.final = (self.display or content["data"]), content["data"]
        if self._press and self.button and len(self.values) > 2:
            self._press = False
            self._kernel.click(self.button)


@pytest.mark.parametrize("cell", ["watched(100_000)", "await asyncio.to_thread(watched, 100_000)"])
def test_stop_works_while_the_cell_runs(kernel: Kernel, cell: str) -> None:
    front_end = FrontEnd(kernel, press=True)
    printed = kernel.cell(f"done = {cell}; print(2 < done < 10_000)", seen=front_end)
    assert printed == "True\n"
    assert "starting …done" in front_end.values[0]
    assert any("running 0:0" in value for value in front_end.values)
    assert "stopped after" in Parsed(front_end.final["text/html"]).text


def test_an_interrupt_leaves_the_last_facts_behind(kernel: Kernel) -> None:
    front_end = FrontEnd(kernel, press=False)
    code = "threading.Timer(0.5, lambda: print('now', flush=True)).start(); watched(100_000)"
    assert kernel.cell(code, interrupt_at="now", seen=front_end).endswith("KeyboardInterrupt: ")
    assert "of 100,000" in front_end.final["text/plain"]


def test_what_stays_is_plain_html_and_text_without_a_widget(kernel: Kernel) -> None:
    front_end = FrontEnd(kernel, press=False)
    assert kernel.cell("print(watched(30))", seen=front_end) == "30\n"
    assert VIEW in front_end.display
    assert "needs the kernel that ran it" in front_end.display["text/plain"]
    assert set(front_end.final) == {"text/html", "text/plain"}
    parsed = Parsed(front_end.final["text/html"])
    assert parsed.is_inert
    assert "counter × <agent>finished in 0:0" in parsed.text
    assert front_end.final["text/plain"].startswith("counter × <agent>: finished in 0:0")
    assert "30 of 30 done, 0 failed, 0 masked, reward 1.00 over 30 scored" in front_end.final["text/plain"]
    assert front_end.comms == set()


def test_a_notebook_saved_after_the_run_has_the_facts(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(code) for code in (PREPARE, "watched(30)")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": Path(__file__).parents[2]}}).execute()
    display, result = notebook.cells[1].outputs
    assert "30 of 30 done" in display.data["text/plain"]
    assert VIEW not in display.data
    assert result.data["text/plain"] == "30"
    assert len(json.dumps(display)) < 10_000
