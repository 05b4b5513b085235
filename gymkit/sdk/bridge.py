"""The one place where a coroutine becomes a plain call.

One daemon thread holds one event loop for the whole process. It starts on first use, and a forked child starts
its own. ``run`` waits for a coroutine there and blocks the calling thread; ``arun`` awaits it from any other running
loop; ``twin`` makes the plain method out of its ``a…`` coroutine. The user's own loop is never patched: only
``enable_nested_asyncio`` does that, and only when a user calls it.

Caveat: a plain call blocks its thread, so a plain call made on a loop stops everything else on that loop.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any, Generic, ParamSpec, TypeVar

__all__ = ["CLEANUP_SECONDS", "arun", "enable_nested_asyncio", "run", "twin"]

T = TypeVar("T")
P = ParamSpec("P")

CLEANUP_SECONDS = 10.0
"""How long an interrupted call waits for its coroutine to clean up, in seconds."""

_TICK_SECONDS = 0.25
"""Whoever waits wakes this often. On Windows a lock that waits without a bound never sees Ctrl-C, and in ipykernel 7
an interrupt of an awaiting cell takes effect only when the cell's loop has something to do."""


class _Background:
    """The daemon thread and the event loop in it."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="gymkit-loop", daemon=True)
        self._thread.start()
        self._ready.wait()

    def _serve(self) -> None:
        # Not asyncio.run, which nest-asyncio replaces, and not asyncio.Runner, which ends by starting a thread: at the
        # end of a process no thread can be started any more (an error from Python 3.12 on).
        loop = _new_loop()
        try:
            loop.run_until_complete(self._stay())
        finally:
            _wind_up(loop)

    async def _stay(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._ready.set()
        await self._stopped.wait()

    def is_here(self) -> bool:
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout=2.0)


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, where it is installed (not on Windows): a run with 256 in flight costs a fifth less CPU on it."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left and close generators, so that a script ends without complaints about pending tasks."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


_starting = threading.Lock()
_current: _Background | None = None
_parents: list[_Background | None] = []


def _background() -> _Background:
    global _current
    with _starting:
        if _current is None:
            _current = _Background()
            atexit.register(_stop)
        return _current


def _stop() -> None:
    global _current
    if _current is not None:
        _current.stop()
        _current = None


def _forget() -> None:
    """In a forked child: the thread was not copied, its lock may have been, held for ever."""
    global _current, _starting
    _parents.append(_current)  # kept, because collecting a loop closes what it shares with the parent
    _current, _starting = None, threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget)


class _Call(Generic[T]):
    """One coroutine for the background loop, seen from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, T]) -> None:
        self.outcome: Future[T] = Future()
        self.outcome.set_running_or_notify_cancel()  # from here on only the coroutine settles it
        self._loop = loop
        self._coro = coro
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop.call_soon_threadsafe(self._start)  # copies the caller's contextvars, which the task inherits

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._record())
        self._task.add_done_callback(self._settle)

    def _cancel(self) -> None:
        if self._task is None:  # Ctrl-C came before the start
            self._settle()
        else:
            self._task.cancel()

    async def _record(self) -> None:
        try:
            value = await self._coro
        except BaseException as error:  # noqa: BLE001 - handed to the caller; a SystemExit here would end the loop
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(value)

    def _settle(self, _: object = None) -> None:
        if not self.outcome.done():  # cancelled before its first step
            self._coro.close()
            self.outcome.set_exception(asyncio.CancelledError())


def run(coro: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop, wait for it, and return its result or raise its error.

    Works in a script, in a notebook cell, in any thread, and inside a running loop (which it blocks). The caller's
    context variables are visible in the coroutine. On Ctrl-C the coroutine is cancelled and gets up to
    ``CLEANUP_SECONDS`` to clean up, then KeyboardInterrupt goes on: what to keep is for the caller to decide.

    Raises RuntimeError when called on the background loop itself, which would wait for itself for ever.
    """
    background = _background()
    if background.is_here():
        name = getattr(coro, "__qualname__", "a coroutine")
        coro.close()
        raise RuntimeError(
            f"a plain call of {name} was made on gymkit's own event loop, which would wait for itself for ever; "
            "there, await the twin with the prefix 'a'"
        )
    call = _Call(background.loop, coro)
    try:
        call.start()  # inside: Ctrl-C may come before this thread goes on
        while not wait_for([call.outcome], timeout=_TICK_SECONDS).done:
            pass
    except KeyboardInterrupt:
        call.cancel()
        wait_for([call.outcome], timeout=CLEANUP_SECONDS)
        raise
    return call.outcome.result()


async def arun(coro: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that runs on the background loop, from any running loop.

    A cancellation goes through: the coroutine is cancelled and has up to ``CLEANUP_SECONDS``; what it then
    returns or raises is the result, as it is for a coroutine awaited in place.
    """
    background = _background()
    if background.is_here():
        return await coro
    call = _Call(background.loop, coro)
    call.start()
    waiting = asyncio.wrap_future(call.outcome)
    try:
        while not (await asyncio.wait([waiting], timeout=_TICK_SECONDS))[0]:
            pass
    except asyncio.CancelledError:
        call.cancel()
        if not (await asyncio.wait([waiting], timeout=CLEANUP_SECONDS))[0]:
            waiting.cancel()
            raise
    return await waiting


def twin(coroutine_function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make the plain twin of an ``a…`` coroutine function or method: ``rollouts = twin(arollouts)``.

    The twin has the coroutine's parameters, annotations and docstring, and its name without the ``a``.
    """
    name = coroutine_function.__name__
    if not (inspect.iscoroutinefunction(coroutine_function) and name.startswith("a")):
        raise TypeError(f"{name} has no plain twin: that is for 'async def' functions whose name starts with 'a'")

    @functools.wraps(coroutine_function)
    def plain(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(coroutine_function(*args, **kwargs))

    plain.__name__ = name[1:]
    plain.__qualname__ = ".".join([*coroutine_function.__qualname__.split(".")[:-1], name[1:]])
    return plain


def enable_nested_asyncio() -> None:
    """Let your own cells call ``asyncio.run`` inside a running loop, for the rest of this process.

    gymkit never needs it. It patches asyncio by way of nest-asyncio2.
    """
    import nest_asyncio2

    nest_asyncio2.apply()
