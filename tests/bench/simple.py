"""How many counter rollouts a second a simple agent does: gymkit and NeMo Gym 0.7.0, one model service, same rows.

The service answers ``/v1/responses`` at once, in a process of its own. NeMo Gym reaches it through its ``openai_model``
server and so does gymkit; a third line is gymkit with a scripted model in its own process, without any socket. NeMo
Gym takes part when GYMKIT_ANCHOR_PYTHON names a Python that has it.

Run it: ``python -m tests.bench.simple [--rollouts 1000] [--in-flight 256]``
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymkit as gk
from tests.bench.anchor import COUNTER, RELAY, anchored
from tests.bench.harness import Measurement, Service, rows, service, table, write_rows
from tests.bench.service import decide

CONFIG = """\
the_counter: {{resources_servers: {{{counter}: {{entrypoint: app.py, domain: agent}}}}}}
policy_model:
  responses_api_models:
    openai_model: {{entrypoint: app.py, openai_base_url: "{url}/v1", openai_api_key: none, openai_model: scripted}}
simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {{type: resources_servers, name: the_counter}}
      model_server: {{type: responses_api_models, name: policy_model}}
"""
SERVERS = (
    f"resources_servers/{COUNTER}",
    "responses_api_models/openai_model",
    "responses_api_agents/simple_agent",
    RELAY,
)


def ours(who: str, model: gk.Model, tasks: Sequence[dict[str, Any]], in_flight: int) -> Measurement:
    """gymkit, files and metrics included, into a folder that is thrown away."""
    env, agent = gk.Env("counter", tasks=tasks), gk.SimpleAgent(model, concurrency=in_flight)
    with tempfile.TemporaryDirectory(prefix="gymkit-bench-") as folder:
        used, start = time.process_time(), time.perf_counter()
        found = env.rollouts(agent, output=Path(folder) / "rollouts.jsonl", capture=False, progress=False)
        seconds = time.perf_counter() - start
    assert found.outcome is not None
    assert found.outcome.mean == 1.0, found.outcome
    return Measurement(who, in_flight, len(tasks), seconds, seconds, {"gymkit": time.process_time() - used})


def theirs(
    python: Path, tasks: Sequence[dict[str, Any]], target: Service, in_flight: Sequence[int]
) -> list[Measurement]:
    """NeMo Gym on the same rows, once for each number in flight."""
    with tempfile.TemporaryDirectory(prefix="gymkit-bench-") as name:
        folder = Path(name)
        source = write_rows(folder / "tasks.jsonl", tasks)
        with anchored(python, folder, CONFIG.format(counter=COUNTER, url=target.url), SERVERS) as running:
            print(f"NeMo Gym 0.7.0: servers ready after {running.ready:.1f} s", flush=True)
            return [
                running.collect(source, folder / f"out{n}" / "rollouts.jsonl", n, agent="simple_agent")
                for n in in_flight
            ]


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[256])
    options = parser.parse_args()
    tasks = rows(options.rollouts)
    with service() as target:
        upstream = gk.Model(f"{target.url}/v1", "scripted", api="responses")
        measured = []
        for flight in options.in_flight:
            for who, model in (("gymkit, openai_model", upstream), ("gymkit, scripted", gk.Model.scripted(decide))):
                ours(who, model, tasks[:5], 1)  # imports and first connections are the start benchmark's business
                measured.append(min((ours(who, model, tasks, flight) for _ in range(3)), key=lambda run: run.seconds))
        if python := os.environ.get("GYMKIT_ANCHOR_PYTHON"):
            measured += theirs(Path(python), tasks, target, options.in_flight)
    peers = {each.in_flight: each for each in measured if each.who.startswith("NeMo")}
    head = ("who", "in flight", "rollouts/s", "while collecting", "x NeMo Gym", "CPU ms a rollout")
    print(table(head, [_line(each, peers.get(each.in_flight)) for each in measured]))


def _line(each: Measurement, peer: Measurement | None) -> tuple[Any, ...]:
    ratio = f"{each.rate / peer.rate:.1f} ({each.collecting_rate / peer.collecting_rate:.1f})" if peer else "-"
    used = sum(each.cpu.values()) / each.rollouts * 1000
    return each.who, each.in_flight, f"{each.rate:.0f}", f"{each.collecting_rate:.0f}", ratio, f"{used:.1f}"


if __name__ == "__main__":
    main()
