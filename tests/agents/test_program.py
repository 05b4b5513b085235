"""A program that runs, below the agent that is made of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymkit.agents.program import Printed, Program

RUNS: list[Callable[..., Any]] = [asyncio.run]
if sys.platform != "win32":
    import uvloop

    RUNS.append(uvloop.run)


@pytest.mark.parametrize("run", RUNS, ids=lambda each: each.__module__)
def test_one_that_ended_before_it_was_told_anything_has_still_printed(run: Callable[..., Any], tmp_path: Path) -> None:
    """On a busy machine it does so now and then; uvloop then raises for a word that nobody can hear."""

    async def late() -> Printed:
        argv = [sys.executable, "-c", "print('deaf')"]
        program = await Program.start(argv, folder=tmp_path, env={}, limit=1000)
        await program._exited
        for _ in range(20):  # turns in which the loop notices that the pipe is gone
            await asyncio.sleep(0)
        return await program.finish(b"a prompt")

    printed = run(late())
    assert (printed.status, printed.out.strip()) == (0, b"deaf")
