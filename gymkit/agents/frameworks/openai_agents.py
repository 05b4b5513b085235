"""``openai-agents``: agents of OpenAI's Agents SDK, their handoffs and their own tools included."""

from __future__ import annotations

from typing import Any

from gymkit.agents.desk import Desk
from gymkit.agents.framework import Framework
from gymkit.agents.harness import MODEL_NAME
from gymkit.wire import codec

_HANDOFF = "transfer_to_"


class OpenAIAgents(Framework):
    """``build`` makes an ``agents.Agent``; its ``max_turns`` are the rollout's own bounds."""

    label = "openai-agents"
    modules = ("agents", "openai")

    async def work(self, desk: Desk) -> str:
        """Run the agent."""
        from agents import OpenAIResponsesModel, RunConfig, Runner
        from openai import AsyncOpenAI

        client = AsyncOpenAI(**self.reach(desk), http_client=self.http)
        model = OpenAIResponsesModel(MODEL_NAME, client)
        agent = self.made(desk, model, [_tool(desk, tool) for tool in desk.tools])
        quiet = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, desk.conversation(), max_turns=None, hooks=_hooks(desk), run_config=quiet)
        return _text(result.final_output)


def _tool(desk: Desk, tool: dict[str, Any]) -> Any:
    from agents import FunctionTool

    async def invoke(context: Any, arguments: str) -> str:
        return await desk.call(tool["name"], arguments, context.tool_call_id)

    return FunctionTool(
        name=tool["name"],
        description=tool["description"],
        params_json_schema=tool["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _hooks(desk: Desk) -> Any:
    from agents import RunHooks

    class Hooks(RunHooks[Any]):  # type: ignore[misc]
        """Records what the model says, and the calls that the SDK deals with itself."""

        def __init__(self) -> None:
            self.handoffs: list[Any] = []

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            items = [item.model_dump(mode="json", exclude_none=True) for item in response.output]
            desk.record(*(item for item in items if item["type"] in ("message", "reasoning")))
            self.handoffs = [item for item in items if item.get("name", "").startswith(_HANDOFF)]

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            if not desk.grants(tool.name):
                desk.own(context.tool_call_id, tool.name, context.tool_arguments, _text(result))

        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            if self.handoffs:
                call = self.handoffs.pop(0)
                desk.own(call["call_id"], call["name"], call["arguments"], f"handed over to {to_agent.name}")

    return Hooks()


def _text(output: Any) -> str:
    if isinstance(output, str) or output is None:
        return output or ""
    if hasattr(output, "model_dump_json"):
        return str(output.model_dump_json())
    try:
        return codec.dumps(output).decode()
    except TypeError:
        return str(output)
