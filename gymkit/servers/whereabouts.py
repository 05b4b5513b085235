"""Where somebody's code was when it raised, in words: a cell of a notebook is ``<cell>``.

A kernel keeps a cell in a temporary file that is named by a number, means nothing to anybody and is gone with it.
"""

from __future__ import annotations

import re
import traceback
from typing import Final

CELL: Final = "<cell>"
"""What stands for the file of a cell."""

_CELL_FILE: Final = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$")
_OURS: Final = ("gymkit.", "concurrent.", "asyncio.")


def file_told(filename: str) -> str:
    """The file of a piece of code, as it is told to people."""
    return CELL if _CELL_FILE.search(filename) else filename


def traceback_of(error: BaseException) -> str:
    """The traceback of ``error`` from somebody's own code on: how the call got there says nothing to them."""
    trace = error.__traceback__
    while trace and trace.tb_next and str(trace.tb_frame.f_globals.get("__name__")).startswith(_OURS):
        trace = trace.tb_next
    told = traceback.TracebackException(type(error), error, trace)  # has read the lines, while files had their names
    _name_cells(told)
    return "".join(told.format()).rstrip()


def _name_cells(told: traceback.TracebackException) -> None:
    for frame in told.stack:
        frame.filename = file_told(frame.filename)
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            _name_cells(other)
