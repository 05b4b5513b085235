"""A remote agent service for the counter tasks, in a process of its own: ``python -m gymkit.testing.counter_service``.

Plain standard library, so that it can be read as a template. Its brain is deterministic: it reads "add 1 then add 2
then get the count" in the conversation it is sent, asks for one tool call a step, and finishes with a message. It keeps
nothing between calls and knows nothing of how a task is scored.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_STEP = re.compile(r"add (-?\d+)|get the count")


def respond(params: dict[str, Any]) -> dict[str, Any]:
    """Answer one ``POST /v1/responses``: the next tool call of the plan, or the final message."""
    conversation = params["input"]
    if isinstance(conversation, str):
        conversation = [{"role": "user", "content": conversation}]
    results = [item["output"] for item in conversation if item.get("type") == "function_call_output"]
    steps = plan(conversation)
    done = len(results)
    output = ask(done, *steps[done]) if done < len(steps) else message(results)
    return {
        "id": f"resp_{done}",
        "created_at": 0.0,
        "model": "counter-service",
        "object": "response",
        "output": [output],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": params.get("tools", []),
        "usage": usage(words(conversation), words(output)),
    }


def plan(conversation: list[dict[str, Any]]) -> list[tuple[str, dict[str, int]]]:
    """What the last user message asks for, as tool names and arguments."""
    texts = [text(item["content"]) for item in conversation if item.get("role") == "user"]
    return [
        ("increment_counter", {"count": int(found[1])}) if found[1] else ("get_counter_value", {})
        for found in _STEP.finditer(texts[-1] if texts else "")
    ]


def ask(step: int, name: str, arguments: dict[str, int]) -> dict[str, Any]:
    """A function call without its output: "run this for me"."""
    call = {"name": name, "arguments": json.dumps(arguments), "status": "completed"}
    return {"type": "function_call", "id": f"fc_{step}", "call_id": f"call_{step}", **call}


def message(results: list[str]) -> dict[str, Any]:
    """The final answer: what the last tool said."""
    content = [{"type": "output_text", "text": results[-1] if results else "Nothing to count.", "annotations": []}]
    return {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": content}


def usage(read: int, written: int) -> dict[str, Any]:
    """Words in the place of tokens."""
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written, **details}


def text(content: Any) -> str:
    """A message's content as text, whichever of its two forms it has."""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def words(value: Any) -> int:
    """How many words the JSON of ``value`` has."""
    return len(re.findall(r"\w+", json.dumps(value)))


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1 with kept-alive connections, and no delay of small packets."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer ``/v1/responses``; a request that cannot be answered gets a 4xx that says why."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/v1/responses":
            return self._send(404, {"error": f"there is no {self.path}, only /v1/responses"})
        try:
            reply = respond(json.loads(body))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            return self._send(400, {"error": f"this is no Responses API request: {error!r}"})
        return self._send(200, reply)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""

    def _send(self, status: int, reply: dict[str, Any]) -> None:
        body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def running() -> Iterator[str]:
    """Run the service in a process of its own for the length of a ``with``; gives its URL."""
    command = [sys.executable, "-m", "gymkit.testing.counter_service", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the counter service did not start: exit status {process.wait()}")
            yield url
        finally:
            process.terminate()


def main() -> None:
    """Serve until killed; the first line printed is the URL."""
    parser = argparse.ArgumentParser(prog="python -m gymkit.testing.counter_service", description=__doc__)
    parser.add_argument("--port", type=int, default=9000, help="port to listen on, 0 for any free one (default 9000)")
    with ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
