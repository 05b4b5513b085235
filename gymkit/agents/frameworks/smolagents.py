"""``smolagents``: Hugging Face's agents that call tools, and those that write Python. They work in a thread.

A ``CodeAgent`` runs the Python that the model writes inside this process, as smolagents does by default; what it calls
is recorded call by call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from gymkit.agents.desk import Desk, as_text
from gymkit.agents.framework import Framework
from gymkit.agents.harness import MODEL_NAME
from gymkit.agents.thread import in_thread

_ANSWERS = "final_answer"
_TYPES = {"string", "boolean", "integer", "number", "array", "object", "null"}


class Smolagents(Framework):
    """``build`` makes a ``MultiStepAgent``; its ``max_steps`` stay its own, and its log is kept quiet."""

    label = "smolagents"
    modules = ("smolagents", "openai")

    async def work(self, desk: Desk) -> str:
        """Run the agent in a thread; one that is given up stops before its next step."""
        from smolagents import LogLevel

        reach = self.reach(desk)
        url, key = reach.pop("base_url"), reach.pop("api_key")
        model = _model(desk, url, key, {**reach, "http_client": self.sync_http})
        agent = self.made(desk, model, [_tool(desk, tool) for tool in desk.tools])
        agent.logger.level = LogLevel.OFF
        heard = _Heard(desk)
        try:
            answer: str = await in_thread(lambda task: heard.run(agent, task), as_text(desk.conversation()))
            return answer
        except asyncio.CancelledError:
            agent.interrupt()
            raise


class _Heard:
    """Runs an agent, and records the calls that smolagents deals with itself."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._calls: dict[str, Any] = {}

    def run(self, agent: Any, task: str) -> str:
        answer: Any = ""
        for event in agent.run(task, stream=True):
            match type(event).__name__:
                case "ToolCall":
                    self._asked(event)
                case "ToolOutput":
                    self._own(event.id, event.observation)
                case "ActionStep":
                    for call_id in list(self._calls):
                        self._own(call_id, str(event.error or event.observations or ""))
                case "FinalAnswerStep":
                    answer = event.output
        return answer if isinstance(answer, str) else str(answer)

    def _asked(self, call: Any) -> None:
        if self._desk.grants(call.name):
            self._desk.expect(call.id, call.name, call.arguments)
        if call.name != _ANSWERS:
            self._calls[call.id] = call

    def _own(self, call_id: str, output: str) -> None:
        if (call := self._calls.pop(call_id, None)) is not None:
            arguments = call.arguments if isinstance(call.arguments, dict) else {"code": str(call.arguments)}
            self._desk.own(call.id, call.name, arguments, output)


def _model(desk: Desk, url: str, key: str, settings: dict[str, Any]) -> Any:
    from smolagents import OpenAIModel

    class Recorded(OpenAIModel):  # type: ignore[misc]
        """Records what the model says before what it asks for is run."""

        def create_client(self) -> Any:
            """A client that reads zeros where no usage is told: without, smolagents breaks. Our count stays unknown."""
            client = super().create_client()
            completions = client.chat.completions
            completions.create = _counted(completions.create)
            return client

        def generate(self, *args: Any, **kwargs: Any) -> Any:
            said = super().generate(*args, **kwargs)
            desk.say(said.content if isinstance(said.content, str) else "")
            return said

    # Its own retries would sleep for minutes in the thread.
    return Recorded(model_id=MODEL_NAME, api_base=url, api_key=key, client_kwargs=settings, retry=False)


def _counted(create: Callable[..., Any]) -> Callable[..., Any]:
    from openai.types import CompletionUsage

    def counted(**request: Any) -> Any:
        completion = create(**request)
        completion.usage = completion.usage or CompletionUsage(completion_tokens=0, prompt_tokens=0, total_tokens=0)
        return completion

    return counted


def _tool(desk: Desk, tool: dict[str, Any]) -> Any:
    from smolagents import Tool

    class Granted(Tool):  # type: ignore[misc]
        """A tool of the environment."""

        skip_forward_signature_validation = True

        def __init__(self) -> None:
            self.name = tool["name"]
            self.description = tool["description"] or tool["name"]
            self.inputs = _inputs(tool["parameters"])
            self.output_type = "string"
            super().__init__()

        def forward(self, *args: Any, **kwargs: Any) -> str:
            return desk.call_from_thread(self.name, {**dict(zip(self.inputs, args, strict=False)), **kwargs})

    return Granted()


def _inputs(parameters: dict[str, Any]) -> dict[str, Any]:
    """A schema's properties as smolagents declares them: a type that it knows, a description, and what is optional."""
    required = parameters.get("required") or ()
    inputs: dict[str, Any] = {}
    for name, schema in (parameters.get("properties") or {}).items():
        known = schema.get("type") if schema.get("type") in _TYPES else "any"
        optional = {} if name in required else {"nullable": True}
        inputs[name] = {**schema, "type": known, "description": schema.get("description") or name, **optional}
    return inputs
