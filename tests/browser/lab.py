"""A real JupyterLab and a real Chromium, for tests: start, open a notebook, run cells, look.

Nothing here knows gymkit. ``Lab`` is the server (loopback only, its own settings folder, no token), ``Notebook`` is
one open page of it. A first page load takes tens of seconds on a small machine, so waits are generous and no test
sleeps: each wait names what it waits for.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

CHROMIUM = os.environ.get("GYMKIT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGE_LOAD_MS = 90_000
WAIT_MS = 60_000

Theme = Literal["light", "dark"]

_THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
_OPTIONS = [
    "--no-browser",
    "--allow-root",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port_retries=0",
    "--IdentityProvider.token=",
    "--ServerApp.password=",
    "--ServerApp.disable_check_xsrf=True",
    "--LabApp.news_url=None",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
]

_KERNEL_READY = """() => {
    const context = window.jupyterapp?.shell.currentWidget?.sessionContext;
    const kernel = context?.session?.kernel;
    return context?.isReady && kernel?.connectionStatus === "connected" && kernel.status === "idle";
}"""

# Looked up anew each time: JupyterLab may replace a cell's elements while it runs.
_HAS_TEXT = """([index, part, pattern]) => {
    const cell = document.querySelectorAll(".jp-Notebook .jp-CodeCell")[index];
    return RegExp(pattern).test(cell?.querySelector(part)?.innerText ?? "");
}"""
_SHUT_DOWN_KERNEL = "() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()"


def free_port() -> int:
    """A port of the loopback interface that nobody listens on right now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab server."""

    url: str
    root: Path
    settings: Path

    def write(self, name: str, cells: list[str]) -> str:
        """Write a notebook of code cells into the server's folder and return its name."""
        (self.root / name).write_text(json.dumps(_notebook(cells)), encoding="utf-8")
        return name

    def read(self, name: str) -> dict[str, Any]:
        """The notebook as it was saved last."""
        notebook: dict[str, Any] = json.loads((self.root / name).read_text(encoding="utf-8"))
        return notebook

    def set(self, plugin: str, **values: object) -> None:
        """Set a user setting, for pages opened from now on: ``lab.set("apputils-extension:themes", theme=…)``."""
        extension, _, name = plugin.partition(":")
        path = self.settings / "@jupyterlab" / extension / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")


@contextmanager
def start_lab(folder: Path) -> Iterator[Lab]:
    """Run a JupyterLab server whose files, settings and log are in ``folder``; it ends with the block."""
    root, settings = folder / "root", folder / "settings"
    root.mkdir()
    port = free_port()
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    command = [sys.executable, "-m", "jupyterlab", *_OPTIONS, f"--ServerApp.port={port}", f"--notebook-dir={root}"]
    with (folder / "lab.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}"
            _await_reply(f"{url}/api", process, folder / "lab.log")
            yield Lab(url, root, settings)
        finally:
            process.terminate()
            process.wait(timeout=30)


class Notebook:
    """A notebook open in JupyterLab."""

    def __init__(self, page: Page, lab: Lab, name: str) -> None:
        self.page = page
        self._lab = lab
        self.name = name
        page.goto(f"{lab.url}/doc/tree/{name}?reset", timeout=PAGE_LOAD_MS)
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=PAGE_LOAD_MS)
        self.wait_ready(PAGE_LOAD_MS)

    def cell(self, index: int) -> Locator:
        """The code cell at this position."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(index)

    def output(self, index: int) -> Locator:
        """The output area of the cell at this position."""
        return self.cell(index).locator(".jp-Cell-outputArea")

    def run(self, index: int) -> None:
        """Start the cell at this position; returns before it ends."""
        self.cell(index).locator(".jp-InputArea-prompt").first.click()
        self.command("notebook:run-cell")

    def command(self, name: str) -> None:
        """Run a command of JupyterLab by its id, as its menus do."""
        self.page.evaluate("name => { void window.jupyterapp.commands.execute(name) }", name)

    def wait_done(self, index: int, timeout_ms: int = WAIT_MS) -> None:
        """Wait until the cell at this position has run to its end."""
        self.wait_text(index, r"^\[\d+\]", timeout_ms, part=".jp-InputArea-prompt")

    def wait_text(self, index: int, pattern: str, timeout_ms: int = WAIT_MS, part: str = ".jp-Cell-outputArea") -> None:
        """Wait until a part of the cell, by default its output, has text that matches a JavaScript pattern."""
        self.page.wait_for_function(_HAS_TEXT, arg=[index, part, pattern], timeout=timeout_ms)

    def wait_ready(self, timeout_ms: int = WAIT_MS) -> None:
        """Wait until the kernel answers: the indicator in the toolbar says idle well before that."""
        self.page.wait_for_function(_KERNEL_READY, timeout=timeout_ms)

    def save(self) -> dict[str, Any]:
        """Save the notebook and return what is on disk then."""
        before = (self._lab.root / self.name).stat().st_mtime_ns
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        while (self._lab.root / self.name).stat().st_mtime_ns == before:
            self.page.wait_for_timeout(50)
        return self._lab.read(self.name)


@contextmanager
def open_notebook(browser: Browser, lab: Lab, cells: list[str], *, theme: Theme = "light") -> Iterator[Notebook]:
    """Open a new notebook with these code cells in a fresh browser context."""
    lab.set("apputils-extension:themes", theme=_THEMES[theme])
    lab.set("apputils-extension:notification", fetchNews="false", checkForUpdates=False)
    name = lab.write(f"notebook{time.monotonic_ns()}.ipynb", cells)
    context = browser.new_context(viewport={"width": 1100, "height": 800}, color_scheme=theme)
    try:
        notebook = Notebook(context.new_page(), lab, name)
        yield notebook
        notebook.page.evaluate(_SHUT_DOWN_KERNEL)
    finally:
        context.close()


def _notebook(cells: list[str]) -> dict[str, Any]:
    return {
        "cells": [
            {"cell_type": "code", "id": f"c{i}", "metadata": {}, "execution_count": None, "outputs": [], "source": text}
            for i, text in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _await_reply(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PAGE_LOAD_MS / 1000
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with opener.open(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)  # the server is a process of its own: there is nothing else to wait on
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8', errors='replace')}")
