"""The bridge in a real ipykernel: cells queued at once, interrupts that keep what is done, threads of a cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernels import Kernel, start_kernel

PREPARE = """
import asyncio
from gymkit.sdk import bridge

done = []

async def collect(number):
    for index in range(number):
        done.append(index)
        if index == 3:
            print("working", flush=True)
        await asyncio.sleep(0.01)
    return number
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with start_kernel(tmp_path_factory.mktemp("ipython")) as kernel:
        assert kernel.cell(PREPARE) == ""
        yield kernel


@pytest.mark.parametrize("call", ["bridge.run(collect(2))", "await bridge.arun(collect(2))"])
def test_eight_cells_queued_at_once_all_run_in_order(kernel: Kernel, call: str) -> None:
    requests = [kernel.queue(f"print({number}, {call})") for number in range(8)]
    assert [kernel.result(request) for request in requests] == [f"{number} 2\n" for number in range(8)]


def test_an_interrupt_of_a_plain_call_keeps_what_is_done_and_the_kernel(kernel: Kernel) -> None:
    code = """
done.clear()
try:
    bridge.run(collect(100_000))
except KeyboardInterrupt:
    print("kept", 3 < len(done) < 10_000)
"""
    assert kernel.cell(code, interrupt_at="working") == "working\nkept True\n"
    assert kernel.cell("print(bridge.run(collect(1)))") == "1\n"


def test_an_interrupt_of_an_awaited_call_cancels_the_coroutine(kernel: Kernel) -> None:
    code = "done.clear(); await bridge.arun(collect(100_000))"
    assert kernel.cell(code, interrupt_at="working").startswith("working\nCancelledError")
    assert kernel.cell("print(3 < len(done) < 10_000)") == "True\n"
    count = "before = len(done); await asyncio.sleep(0.1); print(len(done) - before)"
    assert kernel.cell(count) == "0\n"


def test_threads_of_a_cell_may_call_at_once(kernel: Kernel) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(lambda _: bridge.run(collect(2)), range(8))))
"""
    assert kernel.cell(code) == "16\n"


def test_what_a_coroutine_prints_belongs_to_its_cell(kernel: Kernel) -> None:
    """ipykernel 7 files the output of a thread under the cell that started the thread; ours lives on over cells."""
    code = "async def speak(): print('here')\nbridge.run(speak())"
    assert [kernel.cell(code) for _ in range(2)] == ["here\n", "here\n"]


BROKEN = """
import gymkit as gk

env = gk.Env.define("mine", tasks=[{"prompt": "Say it."}])

@env.verify
def check(state, task, response):
    return {}[task.prompt]

def agent(params):
    raise KeyError("lost")

print(env.check())
print(env.rollouts(gk.Agent(agent), output=OUTPUT, progress=False).failures["message"].iloc[0])
"""


def test_what_breaks_in_a_cell_is_told_without_the_file_the_kernel_keeps_it_in(kernel: Kernel, tmp_path: Path) -> None:
    told = kernel.cell(BROKEN.replace("OUTPUT", repr(str(tmp_path / "r.jsonl"))))
    assert 'File "<cell>", line 7, in check\n    return {}[task.prompt]\n' in told
    assert "raised KeyError: 'lost' (<cell>:10, in agent)" in told
    assert "ipykernel" not in told
