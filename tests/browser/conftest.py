"""One JupyterLab and one Chromium for all browser tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import CHROMIUM, CHROMIUM_FLAGS, Lab, Notebook, Theme, open_notebook, start_lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

OpenNotebook = Callable[..., Notebook]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:  # no longer than its package: Playwright keeps a loop running in the main thread
    """A headless Chromium; the test is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on the PATH and none named by GYMKIT_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab server on loopback."""
    with start_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture
def notebook(browser: Browser, lab: Lab) -> Iterator[OpenNotebook]:
    """Open a notebook: ``notebook(["first cell", "second"], theme="dark")``; it closes with the test."""
    with ExitStack() as opened:

        def open_(cells: list[str], *, theme: Theme = "light") -> Notebook:
            return opened.enter_context(open_notebook(browser, lab, cells, theme=theme))

        yield open_
