"""The live display of a run: a panel in a notebook, one line in a terminal, a line now and then in a log.

Whoever shows one enters it in the thread of the cell, so that the output belongs to the cell, and has ``follow`` run
on a loop meanwhile. The panel is updated by trait, never by printing from a thread; when it closes, what stays in
the notebook is plain HTML with the last facts, which needs neither JavaScript nor the kernel.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, Final, Protocol, TextIO
from uuid import uuid4

from gymkit.views.clicks import on_click
from gymkit.views.facts import Facts, Readable
from gymkit.views.html import framed, style_sheet, tag, visible

__all__ = ["Live", "live"]

INTERVAL_SECONDS: Final = 0.2
"""A live display is brought up to date this often."""

LOG_SECONDS: Final = 30.0
"""A log gets a line this often."""

STOP_HINT: Final = "Cut what is in flight, keep what is done"
INTERRUPT_HINT: Final = "To stop, interrupt the kernel (■): what is done is kept."


class Display(Protocol):
    """Somewhere to show facts."""

    def show(self, facts: Facts, stop: Callable[[], None]) -> None:
        """Show the first facts, and ``stop`` if there is a way to press it; in the thread of the cell."""

    def update(self, facts: Facts) -> None:
        """Show newer facts; from any thread."""

    def close(self, facts: Facts) -> None:
        """Leave the last facts behind."""


class Live(AbstractContextManager["Live"]):
    """A display of ``progress`` that is there from entry to exit; ``live`` makes one that fits the surroundings."""

    def __init__(self, progress: Readable, display: Display, stop: Callable[[], None]) -> None:
        self._progress = progress
        self._display = display
        self._stop = stop
        self._stopping = False
        self._closed = False
        self._one_at_a_time = Lock()

    def __enter__(self) -> Live:
        self._display.show(self._facts(), self._ask_to_stop)
        return self

    def __exit__(self, *_: object) -> None:
        with self._one_at_a_time:
            self._closed = True
            self._display.close(self._facts())

    async def follow(self) -> None:
        """Bring the display up to date until it closes."""
        while self._update():
            await asyncio.sleep(INTERVAL_SECONDS)

    def _update(self) -> bool:
        with self._one_at_a_time:
            if not self._closed:
                self._display.update(self._facts())
            return not self._closed

    def _facts(self) -> Facts:
        return Facts.read(self._progress, stopping=self._stopping)

    def _ask_to_stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._stop()


def live(progress: Readable, *, stop: Callable[[], None], title: str) -> Live:
    """Return a display of ``progress`` for where this runs: a notebook, a terminal or a log (standard error).

    ``stop`` is called at most once, from any thread, when the user presses Stop; ``title`` names the run.
    """

    return Live(progress, _display(title), stop)


def _display(title: str) -> Display:
    if _in_notebook():
        return NotebookPanel(title)
    return TerminalLine(title) if sys.stderr.isatty() else LogLines(title, sys.stderr)


class NotebookPanel:
    """ipywidgets while the run goes on, static HTML afterwards."""

    def __init__(self, title: str) -> None:
        import ipywidgets

        self._title = title
        self._id = uuid4().hex
        self._body = ipywidgets.HTML(layout=ipywidgets.Layout(flex="1 1 auto", min_width="0"))
        self._button = ipywidgets.Button(
            description="Stop", icon="stop", tooltip=STOP_HINT, layout=ipywidgets.Layout(width="auto", flex="none")
        )
        self._hint = ipywidgets.HTML(tag("span", INTERRUPT_HINT))
        self._style = ipywidgets.HTML(f"<style>{style_sheet()}</style>", layout=ipywidgets.Layout(display="none"))
        row = ipywidgets.Layout(align_items="flex-start", grid_gap="1rem", max_width="60rem")
        self._panel = ipywidgets.HBox([self._style, self._body], layout=row)

    def show(self, facts: Facts, stop: Callable[[], None]) -> None:
        from IPython.display import display

        works = on_click(self._button, stop)
        self._panel.children += (self._button if works else self._hint,)
        self.update(facts)
        note = f"{self._title}: this run's live display needs the kernel that ran it"
        static = {"text/html": framed(tag("p", note), label=self._title), "text/plain": visible(note)}
        display(self._panel._repr_mimebundle_() | static, raw=True, display_id=self._id)  # type: ignore[no-untyped-call]

    def update(self, facts: Facts) -> None:
        self._body.value = tag("section", facts.html(self._title), class_="gk", aria_label=f"Progress of {self._title}")
        if facts.stopping:
            self._button.disabled = True

    def close(self, facts: Facts) -> None:
        from IPython.display import update_display

        html = framed(facts.html(self._title), label=f"Progress of {self._title}")
        text = visible(f"{self._title}: {facts.state}: {facts.line()}")
        static = {"text/html": html, "text/plain": text}
        update_display(static, raw=True, display_id=self._id)  # type: ignore[no-untyped-call]
        for widget in (self._panel, self._style, self._body, self._button, self._hint):
            for part in (widget, widget.layout, getattr(widget, "style", None)):
                if part is not None:  # else it would be saved with the notebook, for nobody
                    part.close()


class TerminalLine:
    """The title, and under it one line that is rewritten in place."""

    def __init__(self, title: str) -> None:
        self._title = visible(title)
        self._bar: Any = None

    def show(self, facts: Facts, stop: Callable[[], None]) -> None:
        from tqdm import tqdm

        print(self._title, file=sys.stderr)
        self._bar = tqdm(total=facts.total, bar_format="|{bar:8}| {desc}", file=sys.stderr, dynamic_ncols=True)
        self.update(facts)

    def update(self, facts: Facts) -> None:
        self._bar.total = facts.total
        self._bar.n = facts.done
        self._bar.set_description_str(facts.line())

    def close(self, facts: Facts) -> None:
        self.update(facts)
        self._bar.close()


class LogLines:
    """A line every ``LOG_SECONDS`` and one at the end, for a file or a pipe."""

    def __init__(self, title: str, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._title = visible(title)
        self._stream = stream
        self._clock = clock
        self._due = 0.0

    def show(self, facts: Facts, stop: Callable[[], None]) -> None:
        self._due = self._clock() + LOG_SECONDS

    def update(self, facts: Facts) -> None:
        if self._clock() >= self._due:
            self._due = self._clock() + LOG_SECONDS
            self._write(facts)

    def close(self, facts: Facts) -> None:
        self._write(facts)

    def _write(self, facts: Facts) -> None:
        print(f"{self._title}: {facts.line()}", file=self._stream, flush=True)


def _in_notebook() -> bool:
    """Whether a front end shows the output: a kernel, and not IPython in a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
