"""Make the logs in this folder anew, with Inspect AI: see README.md. Run it with a Python that has ``inspect_ai``."""

# mypy: ignore-errors
from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, includes, mean, scorer
from inspect_ai.solver import generate, solver, use_tools
from inspect_ai.tool import ToolError, tool

HERE = Path(__file__).parent


@tool
def add():
    async def execute(a: int, b: int):
        """Add two numbers.

        Args:
            a: One.
            b: The other.
        """
        if a < 0:
            raise ToolError("no negative numbers")
        return str(a + b)

    return execute


@scorer(metrics=[mean()])
def graded():
    async def score(state, target):
        if state.sample_id == 2:
            return Score(value=0.25, explanation="a quarter right")
        return Score(value=float(target.text in state.output.completion))

    return score


@solver
def fragile():
    async def solve(state, generate):
        if state.sample_id == "odd" and state.epoch == 2:
            raise RuntimeError("the sandbox is gone\u2028for good")
        return state

    return solve


def sums() -> Task:
    asked = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="-1+3?")]
    samples = [
        Sample(id=1, input="2+3?", target="5", metadata={"level": "easy"}),
        Sample(id=2, input=asked, target="2", metadata={"level": "hard"}),
        Sample(id="odd", input="What is 1+1?", target="2"),
    ]
    solvers = [fragile(), use_tools(add()), generate()]
    return Task(dataset=samples, solver=solvers, scorer=[includes(), graded()], epochs=2, name="sums")


def counted(output: ModelOutput) -> ModelOutput:
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return output


def called(a: int, b: int) -> ModelOutput:
    return counted(ModelOutput.for_tool_call("mockllm/model", "add", {"a": a, "b": b}))


def said(text: str, why: str | None = None) -> ModelOutput:
    content = [ContentReasoning(reasoning=why), ContentText(text=text)] if why else text
    message = ChatMessageAssistant(content=content, model="mockllm/model", source="generate")
    return counted(
        ModelOutput(model="mockllm/model", choices=[ChatCompletionChoice(message=message, stop_reason="stop")])
    )


def outputs() -> Iterator[ModelOutput]:
    for _ in range(2):
        yield from (called(2, 3), said("It is 5.", "two and three"))
        yield from (called(-1, 3), said("I cannot."))
        yield said("3")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = get_model("mockllm/model", custom_outputs=list(outputs()))
        eval(sums(), model=model, log_dir=folder, max_samples=1, fail_on_error=False, display="none")
        log = read_eval_log(next(Path(folder).glob("*.eval")).as_posix())
    for sample in log.samples:
        sample.events = []
        if sample.error:  # with paths of the machine
            sample.error.traceback = sample.error.traceback_ansi = ""
    log.eval.task_file = None
    for ending in ("eval", "json"):
        write_eval_log(log, (HERE / f"sums.{ending}").as_posix())


if __name__ == "__main__":
    main()
