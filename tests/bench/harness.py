"""What the benchmarks share: counter rows, the service's process, one measurement, one table."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.bench.service import decide

SERVICE = Path(__file__).with_name("service.py")
INCREMENT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
NOTHING = {"type": "object", "properties": {}, "required": []}
TOOLS = [
    {
        "type": "function",
        "name": name,
        "description": "",
        "parameters": schema | {"additionalProperties": False},
        "strict": True,
    }
    for name, schema in (("increment_counter", INCREMENT), ("get_counter_value", NOTHING))
]


def rows(count: int, mode: str = "") -> list[dict[str, Any]]:
    """``count`` different counter tasks, as an input file holds them; ``mode`` asks the service for a fault."""
    return [_row(number, f" #mode={mode}" if mode else "") for number in range(count)]


def _row(number: int, suffix: str) -> dict[str, Any]:
    first, second, start = number + 1, number % 97 + 1, number % 13
    text = f"add {first} then add {second} then get the count{suffix}"
    params = {"input": [{"role": "user", "content": text}], "tools": TOOLS}
    return {"responses_create_params": params, "initial_count": start, "expected_count": start + first + second}


def bodies(row: dict[str, Any]) -> list[bytes]:
    """Every request body that the service gets in the rollout of ``row``, in order."""
    params, count, sent = row["responses_create_params"], row["initial_count"], []
    items = list(params["input"])
    while True:
        sent.append(orjson.dumps(params | {"input": items}))
        item = decide(params | {"input": items})["output"][0]
        if item["type"] == "message":
            return sent
        count += orjson.loads(item["arguments"]).get("count", 0)
        output = b'{"success":true}' if item["name"] == "increment_counter" else b'{"count":%d}' % count
        items += [item, {"type": "function_call_output", "call_id": item["call_id"], "output": output.decode()}]


def write_rows(path: Path, tasks: Sequence[dict[str, Any]]) -> Path:
    """Write an input file; returns ``path``."""
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in tasks))
    return path


@dataclass(frozen=True)
class Service:
    """A running service process."""

    url: str

    def cpu(self) -> float:
        """CPU seconds that the service has used so far."""
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.url}/cpu", timeout=10) as reply:
            return float(reply.read())


@contextmanager
def service(latency: float = 0.0) -> Iterator[Service]:
    """The counter service on a free port; it ends with the block, or with this process."""
    command = [sys.executable, str(SERVICE), "--latency", str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        yield Service(f"http://127.0.0.1:{int(process.stdout.readline())}")
        process.stdin.close()
        process.wait(timeout=10)


@dataclass(frozen=True)
class Measurement:
    """One run: ``seconds`` of wall clock for the whole command, ``collecting`` for the part that runs rollouts."""

    who: str
    in_flight: int
    rollouts: int
    seconds: float
    collecting: float
    cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds by part."""

    @property
    def rate(self) -> float:
        """Rollouts a second over the whole command."""
        return self.rollouts / self.seconds

    @property
    def collecting_rate(self) -> float:
        """Rollouts a second while collecting."""
        return self.rollouts / self.collecting


def table(head: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in [head, ["---"] * len(head), *lines])
