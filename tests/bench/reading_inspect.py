"""The Inspect AI side of the reading benchmark; runs in a Python that has ``inspect_ai`` and not gymkit.

``write RUN.jsonl LOG.eval`` writes a log of the same conversations, ``read LOG.eval`` measures its data frames.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

MODEL = "counter-stub"


def samples(path: Path) -> Iterator[Any]:
    """Each rollout of ``path`` as a sample with one model event, from which ``messages_df`` takes the messages."""
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatCompletionChoice, GenerateConfig, ModelOutput
    from inspect_ai.scorer import Score

    with path.open("rb") as file:
        for row in map(json.loads, file):
            said = [message.model_copy(update={"id": uuid4().hex}) for message in messages(row)]
            output = ModelOutput(model=MODEL, choices=[ChatCompletionChoice(message=said[-1])])
            settings = {"tools": [], "tool_choice": "auto", "config": GenerateConfig()}
            yield EvalSample(
                id=row["_ng_task_index"],
                epoch=row["_ng_rollout_index"] + 1,
                uuid=uuid4().hex,
                input=said[0].text,
                target="",
                messages=said,
                events=[ModelEvent(model=MODEL, input=said[:-1], output=output, **settings)],
                scores={"reward": Score(value=row["reward"])},
            )


def messages(row: dict[str, Any]) -> Iterator[Any]:
    """The conversation of ``row`` as chat messages."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
    from inspect_ai.tool import ToolCall

    yield ChatMessageUser(content=row["responses_create_params"]["input"][0]["content"])
    for item in row["response"]["output"]:
        if item["type"] == "function_call":
            arguments = json.loads(item["arguments"])
            call = ToolCall(id=item["call_id"], function=item["name"], arguments=arguments)
            yield ChatMessageAssistant(content="", tool_calls=[call])
        elif item["type"] == "function_call_output":
            yield ChatMessageTool(content=item["output"], tool_call_id=item["call_id"])
        else:
            yield ChatMessageAssistant(content=item["content"][0]["text"])


def write(path: Path, log: Path) -> None:
    """Write the log."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, write_eval_log

    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="counter",
        dataset=EvalDataset(),
        model=MODEL,
        config=EvalConfig(epochs=4),
    )
    write_eval_log(EvalLog(status="success", eval=spec, samples=list(samples(path))), str(log))


def read(log: Path) -> dict[str, Any]:
    """Measure the samples frame and the messages frame."""
    from inspect_ai.analysis import messages_df, samples_df

    started, cpu = time.perf_counter(), time.process_time()
    frames = [samples_df(str(log), quiet=True), messages_df(str(log), quiet=True)]
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    status = Path("/proc/self/status").read_text().splitlines()
    peak = int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1000
    size = sum(float(frame.memory_usage(deep=True).sum()) for frame in frames) / 1e6
    rows = sum(len(frame) for frame in frames)
    return {
        "who": "Inspect AI samples_df + messages_df",
        "seconds": seconds,
        "cpu": cpu,
        "peak": peak,
        "frames": size,
        "rows": rows,
    }


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        print(json.dumps(read(Path(sys.argv[2]))))
