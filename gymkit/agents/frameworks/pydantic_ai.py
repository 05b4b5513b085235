"""``pydantic-ai``: agents of Pydantic AI, their own tools and output types included."""

from __future__ import annotations

from typing import Any

from gymkit.agents.desk import Desk, only_text
from gymkit.agents.framework import Framework
from gymkit.agents.harness import MODEL_NAME
from gymkit.wire import codec
from gymkit.wire.dialects.reasoning import reasoning_item
from gymkit.wire.responses import content_text


class PydanticAI(Framework):
    """``build`` makes a ``pydantic_ai.Agent``; the limit of requests is the rollout's own bounds."""

    label = "pydantic-ai"
    modules = ("pydantic_ai", "openai")

    async def work(self, desk: Desk) -> str:
        """Run the agent, node by node."""
        from openai import AsyncOpenAI
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider
        from pydantic_ai.usage import UsageLimits

        client = AsyncOpenAI(**self.reach(desk), http_client=self.http)
        model = OpenAIResponsesModel(MODEL_NAME, provider=OpenAIProvider(openai_client=client))
        agent = self.made(desk, model, [_tool(desk, tool) for tool in desk.tools])
        prompt, history = _conversation(desk)
        heard = _Heard(desk)
        limits = UsageLimits(request_limit=None)
        async with agent.iter(prompt, message_history=history, usage_limits=limits) as run:
            async for node in run:
                heard.node(node)
        heard.results(run.result.new_messages()[-1:])
        return _text(run.result.output)


def _tool(desk: Desk, tool: dict[str, Any]) -> Any:
    from pydantic_ai import Tool

    async def invoke(context: Any, **arguments: Any) -> str:
        return await desk.call(tool["name"], arguments, context.tool_call_id)

    return Tool.from_schema(invoke, tool["name"], tool["description"], tool["parameters"], takes_ctx=True)


class _Heard:
    """Records what the model says, and the calls that Pydantic AI deals with itself."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._calls: dict[str, Any] = {}

    def node(self, node: Any) -> None:
        if (response := getattr(node, "model_response", None)) is not None:
            for part in response.parts:
                self._said(part)
        elif (request := getattr(node, "request", None)) is not None:
            self.results([request])

    def results(self, messages: list[Any]) -> None:
        """The outputs of calls, and what was wrong with them."""
        for part in (part for each in messages for part in each.parts):
            call = self._calls.pop(getattr(part, "tool_call_id", ""), None)
            if call is not None and part.part_kind in ("tool-return", "retry-prompt"):
                is_return = part.part_kind == "tool-return"
                output = part.model_response_str() if is_return else part.model_response()
                self._desk.own(call.tool_call_id, call.tool_name, call.args_as_json_str(), output)

    def _said(self, part: Any) -> None:
        match part.part_kind:
            case "text":
                self._desk.say(part.content)
            case "thinking" if part.content:
                self._desk.record(reasoning_item(part.content))
            case "tool-call":
                self._calls[part.tool_call_id] = part


def _conversation(desk: Desk) -> tuple[str | None, list[Any]]:
    """The last user's message as the prompt, what is before it as history; all of it where the user was not last."""
    items = desk.conversation()
    if items and items[-1].get("role") == "user":
        return only_text(items[-1]), _history(items[:-1])
    return None, _history(items)


def _history(items: list[dict[str, Any]]) -> list[Any]:
    from pydantic_ai import messages

    history: list[Any] = []
    names: dict[str, str] = {}
    for item in items:
        kind = item.get("type") or "message"
        part: Any
        if kind == "message" and item["role"] == "assistant":
            part = messages.TextPart(only_text(item))
        elif kind == "message":
            made = messages.UserPromptPart if item["role"] == "user" else messages.SystemPromptPart
            part = made(only_text(item))
        elif kind == "function_call":
            names[item["call_id"]] = item["name"]
            part = messages.ToolCallPart(item["name"], item["arguments"], item["call_id"])
        elif kind == "function_call_output":
            output = content_text(item["output"])
            part = messages.ToolReturnPart(names.get(item["call_id"], ""), output, item["call_id"])
        else:
            continue  # reasoning, which models read only as they wrote it
        whole = messages.ModelResponse if isinstance(part, messages.TextPart | messages.ToolCallPart) else None
        if history and isinstance(history[-1], whole or messages.ModelRequest):
            history[-1].parts.append(part)
        else:
            history.append((whole or messages.ModelRequest)([part]))
    return history


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    from pydantic_core import to_jsonable_python

    return codec.dumps(to_jsonable_python(output, fallback=str)).decode()
