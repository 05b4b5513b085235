"""A button of a widget that works while the cell that shows it is still running.

A kernel runs one cell at a time, and a click is a message to the kernel: it waits for the cell. There are two ways
past that. From ipykernel 7.0 a front end may send a widget's messages to a thread beside the cell (a subshell), as
JupyterLab does. From 7.4 the kernel sends them back to the thread that last wrote to the widget, which is the cell's,
so that a click waits again; but it asks the widget's comm first, on a thread of its own that is always free. There we
listen. Measured with JupyterLab 4.6 and ipykernel 7.4: without this, no click arrives before the cell ends; with it,
it arrives at once, also when the front end knows no subshells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ROUTE = "_reply_subshell_for"
"""The question of ipykernel 7.4: which thread gets this message."""


def on_click(button: Any, callback: Callable[[], None]) -> bool:
    """Call ``callback`` when an ipywidgets ``Button`` is clicked, from whatever thread hears of it, maybe twice.

    Returns whether that can happen while a cell runs; when not, a click waits for the end of the cell.
    """
    button.on_click(lambda _: callback())
    if not hasattr(button.comm, _ROUTE):
        return _has_subshells()

    def route(data: Any, chosen_by_front_end: str | None) -> str | None:
        if _is_click(data):
            callback()
        return chosen_by_front_end

    setattr(button.comm, _ROUTE, route)
    return True


def _is_click(data: Any) -> bool:
    return isinstance(data, dict) and data.get("method") == "custom" and data.get("content") == {"event": "click"}


def _has_subshells() -> bool:
    from ipykernel.kernelbase import Kernel

    return Kernel.initialized() and bool(getattr(Kernel.instance(), "_supports_kernel_subshells", False))
