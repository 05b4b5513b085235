from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gymkit.sdk import bridge
from tests.sdk.parity import twin_faults

who = contextvars.ContextVar("who", default="nobody")


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def fail() -> None:
    raise LookupError("no such thing")


def script(source: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter to its end, with warnings as errors."""
    command = [sys.executable, "-W", "error", "-X", "dev", *options, "-c", textwrap.dedent(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def interrupt_main_thread() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


# --- plain calls ----------------------------------------------------------------------------------------------------


def test_run_returns_and_raises_what_the_coroutine_does() -> None:
    assert bridge.run(double(4)) == 8
    with pytest.raises(LookupError, match="no such thing"):
        bridge.run(fail())


def test_run_works_inside_a_running_loop() -> None:
    async def main() -> int:
        return bridge.run(double(3))

    assert asyncio.run(main()) == 6


def test_threads_at_once_share_one_loop_and_run_concurrently() -> None:
    here: list[asyncio.AbstractEventLoop] = []
    everyone = bridge.run(_event())

    async def meet() -> None:
        here.append(asyncio.get_running_loop())
        if len(here) == 8:
            everyone.set()
        await asyncio.wait_for(everyone.wait(), timeout=10)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: bridge.run(meet()), range(8)))
    assert len(set(here)) == 1


async def _event() -> asyncio.Event:
    return asyncio.Event()


def test_context_variables_reach_the_coroutine_and_do_not_leak_back() -> None:
    async def introduce() -> str:
        seen = who.get()
        who.set("the coroutine")
        return seen

    token = who.set("the cell")
    try:
        assert bridge.run(introduce()) == "the cell"
        assert asyncio.run(bridge.arun(introduce())) == "the cell"
        assert who.get() == "the cell"
    finally:
        who.reset(token)


def test_a_plain_call_on_the_background_loop_is_refused_with_a_sentence() -> None:
    async def recurse() -> int:
        return bridge.run(double(1))

    with pytest.raises(RuntimeError, match=r"plain call of double .* await the twin with the prefix 'a'"):
        bridge.run(recurse())


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_exit_raised_in_a_coroutine_reaches_the_caller_and_leaves_the_loop_alive(error: BaseException) -> None:
    async def leave() -> None:
        raise error

    with pytest.raises(type(error)):
        bridge.run(leave())
    assert bridge.run(double(1)) == 2


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def test_ctrl_c_cancels_waits_for_the_cleanup_and_goes_on() -> None:
    steps: list[str] = []

    async def collect() -> None:
        try:
            asyncio.get_running_loop().call_soon(interrupt_main_thread)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            steps.append("flushed")
            raise

    with pytest.raises(KeyboardInterrupt):
        bridge.run(collect())
    assert steps == ["flushed"]
    assert bridge.run(double(2)) == 4


def test_a_second_ctrl_c_ends_the_wait_for_a_stubborn_coroutine() -> None:
    release = threading.Event()

    async def stubborn() -> None:
        try:
            asyncio.get_running_loop().call_soon(interrupt_main_thread)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(0.05, interrupt_main_thread)
            await asyncio.to_thread(release.wait, 20)

    try:
        with pytest.raises(KeyboardInterrupt):
            bridge.run(stubborn())
    finally:
        release.set()


def test_the_wait_for_a_cleanup_is_bounded() -> None:
    done = script("""
        import asyncio, signal, threading, time
        from gymkit.sdk import bridge

        async def stubborn():
            asyncio.get_running_loop().call_soon(signal.pthread_kill, threading.main_thread().ident, signal.SIGINT)
            while True:
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    if ended:
                        raise

        ended = []
        bridge.CLEANUP_SECONDS = 0.2
        began = time.monotonic()
        try:
            bridge.run(stubborn())
        except KeyboardInterrupt:
            print("interrupted", 0.2 <= time.monotonic() - began < 5)
        ended.append(True)
    """)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted True\n", "", 0)


# --- awaited calls --------------------------------------------------------------------------------------------------


def test_arun_awaits_on_the_one_background_loop_from_any_loop() -> None:
    async def where() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def nested() -> asyncio.AbstractEventLoop:
        return await bridge.arun(where())

    home = bridge.run(where())
    assert asyncio.run(nested()) is home  # from the user's loop
    assert bridge.run(nested()) is home  # from the background loop itself
    with pytest.raises(LookupError):
        asyncio.run(bridge.arun(fail()))


@pytest.mark.parametrize("keeps", [True, False])
def test_a_cancellation_goes_through_arun_as_through_an_await(keeps: bool) -> None:
    """A collector that returns what it has when it is cancelled does so; one that re-raises is cancelled."""

    async def collect(started: threading.Event) -> str:
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not keeps:
                raise
        return "partial"

    async def main() -> str:
        started = threading.Event()
        task = asyncio.create_task(bridge.arun(collect(started)))
        await asyncio.to_thread(started.wait)
        task.cancel()
        return await task

    if keeps:
        assert asyncio.run(main()) == "partial"
    else:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())


def test_arun_cancelled_before_its_first_step_never_starts_the_coroutine() -> None:
    async def a_few_steps() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def main() -> None:
        held, blocked, begun = threading.Event(), threading.Event(), []

        async def hold() -> None:
            held.set()
            blocked.wait(10)  # keeps the background loop from taking up anything else

        async def begin() -> None:
            begun.append(True)

        holding = asyncio.create_task(bridge.arun(hold()))
        await asyncio.to_thread(held.wait, 10)
        task = asyncio.create_task(bridge.arun(begin()))
        await a_few_steps()
        task.cancel()
        await a_few_steps()
        blocked.set()
        await holding
        with pytest.raises(asyncio.CancelledError):
            await task
        assert begun == []

    asyncio.run(main())


# --- the process ----------------------------------------------------------------------------------------------------


def test_a_script_ends_cleanly_with_work_left_on_the_loop() -> None:
    done = script("""
        import asyncio
        from gymkit.sdk import bridge

        async def linger():
            try:
                await asyncio.sleep(60)
            finally:
                print("cleaned up")

        async def start():
            global task
            task = asyncio.create_task(linger())
            await asyncio.sleep(0)

        bridge.run(start())
        print("end")
    """)
    assert (done.stdout, done.stderr, done.returncode) == ("end\ncleaned up\n", "", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    done = script(
        """
        import asyncio, os, threading
        from gymkit.sdk import bridge

        async def where():
            return os.getpid(), id(threading.current_thread())

        before = bridge.run(where())
        child = os.fork()
        if child == 0:
            here = bridge.run(where())
            os._exit(0 if here[0] == os.getpid() and here != before else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), bridge.run(where()) == before)
        """,
        "-W",
        "ignore::DeprecationWarning",  # Python 3.12 warns of any fork beside a thread
    )
    assert (done.stdout, done.stderr) == ("0 True\n", "")


def test_nothing_of_asyncio_is_patched() -> None:
    done = script("""
        import asyncio, sys
        before = {name: getattr(asyncio, name) for name in dir(asyncio)}
        from gymkit.sdk import bridge

        async def nothing():
            pass

        bridge.run(nothing())
        print(all(getattr(asyncio, name) is value for name, value in before.items()), "nest_asyncio2" in sys.modules)
    """)
    assert (done.stdout, done.stderr) == ("True False\n", "")


@pytest.mark.parametrize("first", ["bridge.run(double(1))", "pass"])
def test_nested_asyncio_is_one_explicit_call_and_the_bridge_works_beside_it(first: str) -> None:
    done = script(f"""
        import asyncio
        from gymkit.sdk import bridge

        async def double(number):
            await asyncio.sleep(0)
            return 2 * number

        async def cell():
            bridge.enable_nested_asyncio()
            return asyncio.run(double(1)), bridge.run(double(2)), await bridge.arun(double(3))

        {first}
        print(asyncio.run(cell()))
    """)
    assert done.stdout == "(2, 4, 6)\n", done.stderr


# --- twins ----------------------------------------------------------------------------------------------------------


class Env:
    def __init__(self, factor: int) -> None:
        self.factor = factor

    async def ascale(self, number: int, /, *, plus: int = 0) -> int:
        """Scale a number.

        Raises OverflowError for more than a hundred.
        """
        if number > 100:
            raise OverflowError(number)
        return self.factor * number + plus

    scale = bridge.twin(ascale)


def test_a_twin_is_the_coroutine_as_a_plain_call() -> None:
    assert Env(3).scale(5, plus=1) == 16
    with pytest.raises(OverflowError):
        Env(3).scale(101)
    assert inspect.signature(Env.scale) == inspect.signature(Env.ascale)
    assert (Env.scale.__name__, Env.scale.__qualname__, Env.scale.__doc__) == ("scale", "Env.scale", Env.ascale.__doc__)


def test_only_a_coroutine_function_with_the_prefix_has_a_twin() -> None:
    async def scale() -> None: ...

    def ascale() -> None: ...

    for unfit in (scale, ascale):
        with pytest.raises(TypeError, match="name starts with 'a'"):
            bridge.twin(unfit)  # type: ignore[arg-type]


def test_the_parity_check_finds_every_kind_of_fault() -> None:
    class Crooked(Env):
        async def close(self) -> None: ...

        async def alone(self) -> None: ...

        async def acall(self, name: str) -> None:
            """Call."""

        def call(self) -> None: ...

    assert twin_faults(Env) == []
    assert twin_faults(Crooked, only_async=frozenset({"alone"})) == [
        "Crooked.call is written by hand; make it with bridge.twin(acall)",
        "Crooked.call has another signature than acall",
        "Crooked.call and acall need one and the same docstring",
        "Crooked.close is a coroutine without the prefix 'a'",
    ]
    assert "Crooked.alone has no twin lone" in twin_faults(Crooked)


def test_a_script_that_used_threads_ends_in_silence() -> None:
    """From Python 3.12 on no thread can be started at the end of a process, and winding up a loop must not try."""
    code = "import asyncio\nfrom gymkit.sdk import bridge\nprint(bridge.run(asyncio.to_thread(sum, [1, 2])))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("3\n", "")
