"""A real ipykernel for tests, spoken to as a front end does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

WAIT = 60


class Kernel:
    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.client: BlockingKernelClient = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=WAIT)

    def queue(self, code: str) -> str:
        """Ask for a cell to be run, and return at once."""
        return str(self.client.execute(code))

    def messages(self, request: str) -> Iterator[dict[str, Any]]:
        """What comes back for a cell until it has ended; other messages are dropped."""
        while True:
            message: dict[str, Any] = self.client.get_iopub_msg(timeout=WAIT)
            if message["parent_header"].get("msg_id") == request:
                if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                    return
                yield message

    def result(
        self, request: str, *, interrupt_at: str = "", seen: Callable[[dict[str, Any]], None] | None = None
    ) -> str:
        """Wait for the end of a cell and return what it printed, with its error if it had one."""
        printed = ""
        for message in self.messages(request):
            kind, content = message["msg_type"], message["content"]
            if seen is not None:
                seen(message)
            if kind == "stream":
                printed += content["text"]
                if interrupt_at and interrupt_at in content["text"]:
                    self.manager.interrupt_kernel()
            elif kind == "error":
                printed += f"{content['ename']}: {content['evalue']}"
        return printed

    def cell(self, code: str, **how: Any) -> str:
        return self.result(self.queue(code), **how)

    def click(self, comm_id: str) -> None:
        """Click an ipywidgets button, as a front end without subshells does."""
        data = {"method": "custom", "content": {"event": "click"}}
        content = {"comm_id": comm_id, "data": data}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))


@contextmanager
def start_kernel(folder: Path) -> Iterator[Kernel]:
    """Start a kernel whose own files are in ``folder``; it ends with the block."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(Path(__file__).parents[1]), env={**os.environ, "IPYTHONDIR": str(folder)})
    kernel = Kernel(manager)
    try:
        yield kernel
    finally:
        kernel.client.stop_channels()
        manager.shutdown_kernel(now=True)
