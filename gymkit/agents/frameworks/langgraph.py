"""``langgraph``: compiled graphs whose state has ``messages``, as LangGraph's and LangChain's own agents have."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from gymkit.agents.desk import Desk
from gymkit.agents.failure import RolloutFailed
from gymkit.agents.framework import Framework
from gymkit.agents.harness import MODEL_NAME
from gymkit.wire.dialects.request_to_chat import request_to_chat


class LangGraph(Framework):
    """``build`` makes a compiled graph; its recursion limit is the rollout's own bounds."""

    label = "langgraph"
    modules = ("langgraph", "langchain_openai")

    async def work(self, desk: Desk) -> str:
        """Run the graph, node by node."""
        from langchain_core.messages import convert_to_messages
        from langchain_openai import ChatOpenAI

        clients = {"http_async_client": self.http, "http_client": self.sync_http}
        model = ChatOpenAI(model=MODEL_NAME, **self.reach(desk), **clients)
        graph = self.made(desk, model, [_tool(desk, tool) for tool in desk.tools])
        chat = request_to_chat(desk.request)
        if lost := [drop for drop in chat.dropped if drop.path.startswith("input")]:
            message = f"LangChain's messages cannot hold {lost[0].path}: {lost[0].reason}"
            raise RolloutFailed(message, kind="agent_error", terminal=True)
        heard = _Heard(desk)
        state = {"messages": convert_to_messages(chat.value["messages"])}
        async for update in graph.astream(state, {"recursion_limit": sys.maxsize}, stream_mode="updates"):
            heard.update(update)
        return heard.answer


def _tool(desk: Desk, tool: dict[str, Any]) -> Any:
    from langchain_core.tools import StructuredTool

    async def invoke(**arguments: Any) -> str:
        return await desk.call(tool["name"], arguments)

    def invoke_in_thread(**arguments: Any) -> str:
        return desk.call_from_thread(tool["name"], arguments)

    return StructuredTool(
        name=tool["name"],
        description=tool["description"] or tool["name"],
        args_schema=tool["parameters"],
        coroutine=invoke,
        func=invoke_in_thread,
    )


class _Heard:
    """Records what the graph's nodes add to its messages."""

    def __init__(self, desk: Desk) -> None:
        self.answer = ""
        """What was said last."""
        self._desk = desk
        self._calls: dict[str, Any] = {}

    def update(self, update: Mapping[str, Any]) -> None:
        for change in update.values():
            messages = change.get("messages") if isinstance(change, Mapping) else None
            for message in messages if isinstance(messages, list) else [messages]:
                self._message(message)

    def _message(self, message: Any) -> None:
        match getattr(message, "type", None):
            case "ai":
                self.answer = _text(message)
                self._desk.say(self.answer)
                for call in message.tool_calls:
                    self._calls[call["id"]] = call
                    if self._desk.grants(call["name"]):
                        self._desk.expect(call["id"], call["name"], call["args"])
            case "tool" if call := self._calls.pop(message.tool_call_id, None):
                self._desk.own(call["id"], call["name"], call["args"], _text(message))


def _text(message: Any) -> str:
    """``text`` was a method and became a property; either way the text of all parts."""
    return str(message.text)
