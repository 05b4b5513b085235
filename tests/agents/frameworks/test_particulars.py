"""What only one of the frameworks has: handoffs, output types, graphs, Python as actions."""

from __future__ import annotations

from typing import Any

import pytest

from gymkit.agents.framework import Framework, Kit
from gymkit.agents.frameworks import adapter
from gymkit.errors import ConfigError, MissingExtra
from gymkit.testing.agent import call
from tests.agents.frameworks.world import TOOLS, World, kinds, outputs_of, require, row

ADD = [call("increment_counter", "add", count=2)]


def text_of(result: dict[str, Any]) -> str:
    return str(result["response"]["output"][-1]["content"][0]["text"])


def test_a_framework_that_nobody_knows_or_has_is_said_before_a_run() -> None:
    with pytest.raises(ConfigError, match="pydantic-ai"):
        adapter("pydantic_ai", lambda kit: None)

    class Absent(Framework):
        label = "absent"
        modules = ("no_such_module_anywhere",)

        async def work(self, desk: Any) -> str:
            return ""

    with pytest.raises(MissingExtra, match=r"gymkit\[absent\]"):
        Absent(lambda kit: None)


def test_a_handoff_is_a_pair_and_the_next_agent_has_the_tools() -> None:
    require("openai-agents")

    def build(kit: Kit) -> Any:
        from agents import Agent

        adder = Agent(name="Adder", model=kit.model, tools=kit.tools)
        return Agent(name="Front", model=kit.model, handoffs=[adder])

    world = World.of("openai-agents", [[call("transfer_to_adder", "h")], ADD, "done"], build)
    result = world.run()
    assert result["reward"] == 1.0
    assert kinds(result) == ["function_call", "function_call_output"] * 2 + ["message"]
    assert outputs_of(result)[0] == "handed over to Adder"
    assert [bool(each["request"]["tools"]) for each in world.calls()] == [True, True, True]


def test_malformed_arguments_come_back_as_the_environment_says_it() -> None:
    require("openai-agents")
    from tests.agents.frameworks.world import openai_agents

    broken = [{**call("increment_counter", "a"), "arguments": "{not json"}]
    result = World.of("openai-agents", [broken, ADD, "done"], openai_agents).run()
    assert [each["error"] for each in result["gymkit"]["calls"]] == ["malformed", None]
    assert "Invalid tool call arguments" in outputs_of(result)[0]


def test_an_answer_that_is_an_object_is_json_and_its_call_a_pair() -> None:
    require("pydantic-ai")

    def build(kit: Kit) -> Any:
        from pydantic_ai import Agent

        return Agent(kit.model, tools=kit.tools, output_type=dict[str, int])

    final = [call("final_result", "f", response={"count": 5})]
    result = World.of("pydantic-ai", [ADD, final], build).run()
    assert result.get("error") is None, result["error"]
    assert text_of(result) == '{"count":5}'
    assert kinds(result) == ["function_call", "function_call_output"] * 2 + ["message"]


def test_an_image_is_refused_and_not_lost_in_silence() -> None:
    require("pydantic-ai")
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}
    parts = [{"type": "input_text", "text": "look"}, image]
    [result] = World.of("pydantic-ai", ["x"]).run(row(input=[{"role": "user", "content": parts}]))
    assert (result["_ng_failure_terminal"], "input_image" in result["error"]) == (True, True)


def test_a_graph_of_plain_functions_works_too() -> None:
    require("langgraph")

    def build(kit: Kit) -> Any:
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph.prebuilt import ToolNode, tools_condition

        model = kit.model.bind_tools(kit.tools)

        def think(state: MessagesState) -> dict[str, Any]:
            return {"messages": model.invoke(state["messages"])}

        graph = StateGraph(MessagesState)
        graph.add_node("think", think)
        graph.add_node("tools", ToolNode(kit.tools))
        graph.add_edge(START, "think")
        graph.add_conditional_edges("think", tools_condition)
        graph.add_edge("tools", "think")
        return graph.compile()

    result = World.of("langgraph", [ADD, "done"], build).run()
    assert result.get("error") is None, result["error"]
    assert result["reward"] == 1.0
    assert text_of(result) == "done"


def test_python_that_the_model_writes_calls_the_tools_one_by_one() -> None:
    require("smolagents")

    def build(kit: Kit) -> Any:
        from smolagents import CodeAgent

        return CodeAgent(tools=kit.tools, model=kit.model)

    code = "<code>\nfor _ in range(2):\n    increment_counter(count=1)\nprint(get_counter_value())\n</code>"
    world = World.of("smolagents", [code, "<code>\nfinal_answer('five')\n</code>"], build)
    result = world.run()
    assert result.get("error") is None, result["error"]
    assert result["reward"] == 1.0
    assert text_of(result) == "five"
    assert [each["error"] for each in result["gymkit"]["calls"]] == [None] * 3
    names = [item["name"] for item in result["response"]["output"] if item["type"] == "function_call"]
    assert names[:4] == ["increment_counter", "increment_counter", "get_counter_value", "python_interpreter"]


def test_a_tool_of_the_provider_cannot_be_granted() -> None:
    require("openai-agents")
    tools = [*TOOLS, {"type": "web_search"}]
    [result] = World.of("openai-agents", ["x"]).run(row(tools=tools))
    assert (result["_ng_failure_terminal"], "web_search" in result["error"]) == (True, True)
