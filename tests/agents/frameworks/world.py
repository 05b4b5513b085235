"""One environment, one scripted model and each framework's agent: what the tests of all adapters share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gymkit.agents.framework import Kit
from gymkit.agents.frameworks import adapter
from gymkit.agents.function import FunctionAgentConfig
from gymkit.agents.harness import Harness, HarnessAgent
from gymkit.models.scripted import ScriptedModel, ScriptedModelConfig
from gymkit.resources.counter import Counter, CounterState
from gymkit.servers.capture import MemoryCapture
from gymkit.servers.route import Route
from gymkit.servers.tool import tool
from gymkit.testing.agent import call
from gymkit.testing.model import Script


class Room(Counter):
    """The counter, with tools that fail and that wait."""

    def __init__(self) -> None:
        super().__init__("room")
        self.waits = asyncio.Event()
        """Set once ``wait`` is called."""

    @tool
    def explode(self, state: CounterState) -> str:
        """Fails."""
        raise ValueError("boom")

    @tool
    async def wait(self, state: CounterState) -> str:
        """Never answers."""
        self.waits.set()
        await asyncio.Event().wait()
        return ""


TOOLS = [each.schema() for each in Room().tools.values()]
ROW: dict[str, Any] = {
    "responses_create_params": {"input": [{"role": "user", "content": "add 2"}], "tools": TOOLS},
    "initial_count": 3,
    "expected_count": 5,
    "verifier_metadata": {"answer": "secret-answer"},
    "_ng_task_index": 0,
    "_ng_rollout_index": 0,
}


def row(rollout: int = 0, **params: Any) -> dict[str, Any]:
    made = deepcopy(ROW)
    made["_ng_rollout_index"] = rollout
    made["responses_create_params"] |= params
    return made


def openai_agents(kit: Kit) -> Any:
    from agents import Agent, function_tool

    @function_tool
    def own(word: str) -> str:
        """A tool of the agent's own."""
        return word.upper()

    return Agent(name="adder", instructions="Add.", model=kit.model, tools=[*kit.tools, own])


def pydantic_ai(kit: Kit) -> Any:
    from pydantic_ai import Agent

    agent = Agent(kit.model, instructions="Add.", tools=kit.tools)

    @agent.tool_plain
    def own(word: str) -> str:
        """A tool of the agent's own."""
        return word.upper()

    return agent


def langgraph(kit: Kit) -> Any:
    from langchain_core.messages import SystemMessage
    from langchain_core.tools import tool as lc_tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    @lc_tool
    def own(word: str) -> str:
        """A tool of the agent's own."""
        return word.upper()

    tools = [*kit.tools, own]
    model = kit.model.bind_tools(tools)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke([SystemMessage("Add."), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile()


def smolagents(kit: Kit) -> Any:
    from smolagents import Tool, ToolCallingAgent

    class Own(Tool):  # type: ignore[misc]
        name = "own"
        description = "A tool of the agent's own."
        inputs = {"word": {"type": "string", "description": "Any word."}}  # noqa: RUF012
        output_type = "string"

        def forward(self, word: str) -> str:
            return word.upper()

    return ToolCallingAgent(tools=[*kit.tools, Own()], model=kit.model, instructions="Add.")


MODULES = {
    "langgraph": ("langgraph", "langchain_openai"),
    "openai-agents": ("agents",),
    "pydantic-ai": ("pydantic_ai",),
    "smolagents": ("smolagents",),
}
BUILDERS: dict[str, Callable[[Kit], Any]] = {
    "langgraph": langgraph,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "smolagents": smolagents,
}
DIALECTS = {"langgraph": "chat", "openai-agents": "responses", "pydantic-ai": "responses", "smolagents": "chat"}


def require(framework: str) -> None:
    for module in MODULES[framework]:
        pytest.importorskip(module, reason=f"{framework} is not installed: pip install 'gymkit[{framework}]'")


def last(framework: str, text: str = "done") -> Any:
    """The model's last reply, as the framework wants it."""
    return [call("final_answer", "end", answer=text)] if framework == "smolagents" else text


@dataclass
class World:
    """An agent server around a harness, with everything that can be looked at afterwards."""

    harness: Harness
    script: Any
    token_ids: bool = False
    bounds: dict[str, Any] = field(default_factory=dict)
    room: Room = field(default_factory=Room)
    capture: MemoryCapture = field(default_factory=MemoryCapture)

    @classmethod
    def of(cls, framework: str, script: Any, build: Any = None, **fields: Any) -> World:
        return cls(adapter(framework, build or BUILDERS[framework]), script, **fields)

    def agent(self) -> HarnessAgent:
        config = ScriptedModelConfig(token_ids=self.token_ids)
        model = ScriptedModel("policy_model", config, script=Script(self.script), capture=self.capture)
        bounds = FunctionAgentConfig(**{"run_timeout_secs": 30.0, **self.bounds})
        route = Route.to_app("policy_model", model)
        return HarnessAgent("mine", bounds, self.harness, route, Route.to_app("room", self.room))

    def run(self, *rows: dict[str, Any]) -> Any:
        """Do rollouts, all at once; nothing may be left behind."""

        async def main() -> list[dict[str, Any]]:
            agent = self.agent()
            try:
                return await asyncio.gather(*[agent.run(each) for each in rows or (row(),)])
            finally:
                await agent.aclose()
                await nothing_left()

        done = asyncio.run(main())
        return done if rows else done[0]

    def calls(self, rollout: str = "0-0") -> list[dict[str, Any]]:
        return self.capture.read(rollout).calls


async def nothing_left() -> None:
    """No task but this one, no thread of a rollout, no folder."""
    async with asyncio.timeout(10):
        while left() or len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)


def left() -> list[Any]:
    import tempfile

    threads = [thread for thread in threading.enumerate() if thread.name == "gymkit-agent"]
    return [*threads, *Path(tempfile.gettempdir()).glob("gymkit-*")]


def kinds(result: dict[str, Any]) -> list[str]:
    return [item["type"] for item in result["response"]["output"]]


def outputs_of(result: dict[str, Any]) -> list[str]:
    return [item["output"] for item in result["response"]["output"] if item["type"] == "function_call_output"]
