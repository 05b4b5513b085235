"""Functions of a user: run in a thread that nothing has to wait for, and found again in what they raise."""

from __future__ import annotations

import asyncio
import contextvars
import sysconfig
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gymkit.servers.whereabouts import CELL, file_told

_OURS = str(Path(__file__).parent)
_INSTALLED = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")})


async def in_thread(function: Callable[[Any], Any], argument: Any) -> Any:
    """A daemon thread and no pool: a function that never returns must not keep the process from ending."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)

    def work() -> None:
        result, failure = None, None
        try:
            result = context.run(function, argument)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            failure = RuntimeError("it raised StopIteration") if isinstance(error, StopIteration) else error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name="gymkit-agent", daemon=True).start()
    return await done


def place_of(error: BaseException) -> str:
    """Where the user's code was, `` (file:line)``: the last line of it that was reached, or of an installed package.

    A line of a cell is told with its function: `` (<cell>:3, in agent)``.
    """
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith((_OURS, "<"))]
    own = [frame for frame in theirs if not frame.filename.startswith(_INSTALLED)]
    if not theirs:
        return ""
    last = (own or theirs)[-1]
    file = file_told(last.filename)
    return f" ({file}:{last.lineno}, in {last.name})" if file == CELL else f" ({file}:{last.lineno})"
