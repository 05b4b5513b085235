"""A counter agent that answers at once: the other side of every benchmark, in a process of its own.

It plays the conversation of the counter tasks ("add 1 then add 2 then get the count"): one tool call per request,
then a message with the last tool's answer. It holds no state between requests, and the same request gets the same
bytes. HTTP/1.1 with keep-alive, spoken straight on an asyncio protocol, so that the service costs as little as a
service in Python can and the benchmarks measure the caller.

A task can ask for misbehaviour with ``#mode=NAME`` in its text; see ``FAULTS``. That is how the records in
``tests/data/nemo_gym`` got their failures.

Run it: ``python tests/bench/service.py [--port N] [--latency SECONDS]``; it prints the port and serves until its
standard input closes, so it never outlives whoever started it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import orjson

Reply = tuple[int, bytes]

_ADD = re.compile(r"add (\d+)")
_MODE = re.compile(r"#mode=(\w+)")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_REASON = {200: b"OK", 307: b"Temporary Redirect", 404: b"Not Found", 411: b"Length Required", 500: b"Server Error"}


@lru_cache(maxsize=10_000)
def plan(text: str) -> tuple[tuple[str, str], ...]:
    """The tool calls that a task's text asks for, as (name, arguments in JSON)."""
    off = 1 if "#mode=wrong" in text else 0
    adds = [("increment_counter", f'{{"count": {int(number) + off}}}') for number in _ADD.findall(text)]
    return (*adds, ("get_counter_value", "{}"))


def text_of(message: dict[str, Any]) -> str:
    """The text of an input message, whether it came as a string or as content parts."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def decide(body: dict[str, Any]) -> dict[str, Any]:
    """The next response of a well-behaved counter agent to one request body."""
    items = body["input"]
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    calls, step = plan(text_of(items[0])), len(outputs)
    if step < len(calls):
        name, arguments = calls[step]
        ask = {"type": "function_call", "id": f"fc_{step}", "call_id": f"call_{step}", "status": "completed"}
        return _response(step, ask | {"name": name, "arguments": arguments}, len(items), len(arguments))
    text = f"The count is {orjson.loads(outputs[-1])['count']}."
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": f"msg_{step}", "role": "assistant", "status": "completed", "content": [part]}
    return _response(step, message, len(items), len(text))


def _response(step: int, item: dict[str, Any], seen: int, written: int) -> dict[str, Any]:
    tokens_in, tokens_out = 20 + 10 * seen, 5 + written
    usage = {
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": f"resp_{step}",
        "created_at": 0.0,
        "model": "instant-counter",
        "object": "response",
        "output": [item],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _changed(**fields: Any) -> Callable[[dict[str, Any]], Reply]:
    """A fault that answers as it should except for these fields; ``None`` leaves the field out."""

    def answer(body: dict[str, Any]) -> Reply:
        response = decide(body) | fields
        return 200, orjson.dumps({key: value for key, value in response.items() if value is not None})

    return answer


def _asking(name: str, arguments: str) -> Callable[[dict[str, Any]], Reply]:
    """A fault that asks for one odd tool call first, and behaves after it."""

    def answer(body: dict[str, Any]) -> Reply:
        items = body["input"]
        first = next((place for place, item in enumerate(items) if item.get("call_id") == "call_odd"), None)
        if first is not None:
            return 200, orjson.dumps(decide(body | {"input": [i for i in items if i.get("call_id") != "call_odd"]}))
        ask = {"type": "function_call", "id": "fc_odd", "call_id": "call_odd", "name": name, "arguments": arguments}
        return 200, orjson.dumps(_response(0, ask, len(items), len(arguments)))

    return answer


_conversations: Counter[str] = Counter()


def _flaky(body: dict[str, Any]) -> Reply:
    """Of the conversations about one task, the second of every three fails at its first request."""
    text = text_of(body["input"][0])
    if len(body["input"]) == 1:
        _conversations[text] += 1
        if _conversations[text] % 3 == 2:
            return 500, b'{"detail": "flaky"}'
    return 200, orjson.dumps(decide(body))


FAULTS: dict[str, Callable[[dict[str, Any]], Reply]] = {
    "notjson": lambda body: (200, b"<html>not json</html>"),
    "http500": lambda body: (500, b'{"detail": "the brain fell over"}'),
    "redirect": lambda body: (307, b""),
    "invalid": _changed(output="not a list"),
    "partialusage": _changed(usage={"input_tokens": 1}),
    "nousage": _changed(usage=None),
    "incomplete": _changed(incomplete_details={"reason": "max_output_tokens"}),
    "undeclared": _asking("no_such_tool", "{}"),
    "malformed": _asking("increment_counter", '{"count": '),
    "wrong": lambda body: (200, orjson.dumps(decide(body))),
    "flaky": _flaky,
}


def answer(body: bytes) -> bytes:
    """The whole HTTP reply to one request body."""
    parsed = orjson.loads(body)
    if b"#mode=" not in body:
        return _framed(200, orjson.dumps(decide(parsed)))
    mode = _MODE.search(text_of(parsed["input"][0]))
    return _framed(*FAULTS[mode[1] if mode else "wrong"](parsed))


def _framed(status: int, body: bytes) -> bytes:
    location = b"location: http://127.0.0.1:1/elsewhere\r\n" if status == 307 else b""
    head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\n%scontent-length: %d\r\n\r\n"
    return head % (status, _REASON[status], location, len(body)) + body


class Connection(asyncio.Protocol):
    """One keep-alive connection. A request is answered as soon as it is whole, or ``latency`` seconds later."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self.buffer, 0, end + 2)
            whole = end + 4 + (int(found[1]) if found else 0)
            if len(self.buffer) < whole:
                return
            head, body, self.buffer = self.buffer[:end], self.buffer[end + 4 : whole], self.buffer[whole:]
            self._reply(head, body)

    def _reply(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"POST /v1/responses "):
            reply = answer(body) if body else _framed(411, b"")
        elif head.startswith(b"GET /cpu "):
            return self.transport.write(_framed(200, b"%.6f" % time.process_time()))
        else:
            reply = _framed(404, b"")
        if self.latency:
            asyncio.get_running_loop().call_later(self.latency, self._write, reply)
        else:
            self.transport.write(reply)

    def _write(self, reply: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(reply)


async def serve(port: int, latency: float) -> None:
    """Serve on 127.0.0.1 until standard input closes; the port is the first line on standard output."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(latency), "127.0.0.1", port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.buffer.read)
    server.close()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    asyncio.run(serve(options.port, options.latency))


if __name__ == "__main__":
    main()
