"""Where a harness works for one rollout: what it was asked, an address of the model, tools, a folder, and a recorder.

The harness runs its own loop. Whatever it says goes onto the desk as items; a tool call is laid there too, and waits
until the rollout's loop has run it in the environment and has put its output beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from gymkit.agents.failure import RolloutFailed
from gymkit.agents.model_door import Seat
from gymkit.wire import codec
from gymkit.wire.responses import content_text, message_text

CLOSE_SECONDS = 5.0
"""Seconds that a harness may take to let go once its rollout is over."""


class Desk:
    """One rollout's. ``request`` is a copy of what the agent was asked, its input a list of items."""

    def __init__(self, request: dict[str, Any], seat: Seat, folder: Path, skills: Path | None = None) -> None:
        self.request = request
        self.seat = seat
        self.folder = folder
        """Private to the rollout, empty at its beginning but for skills, and gone at its end."""
        self.skills = skills
        """The skills of the run, one folder each, in a folder of their own; None for a run without any."""
        self.tools = [_granted(tool) for tool in request.get("tools") or ()]
        """The environment's tools, as function tools of the request."""
        self.asked = asyncio.Event()
        """Set while calls wait."""
        self._names = {tool["name"] for tool in self.tools}
        self._loop = asyncio.get_running_loop()
        self._items: list[dict[str, Any]] = []
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._expected: list[tuple[str, str, Any]] = []
        self._ran: set[tuple[str, str]] = set()
        self._ids = {item["call_id"] for item in request["input"] if item.get("type") == "function_call"}
        self._over = False

    def grants(self, name: str) -> bool:
        """Whether the environment has a tool of this name for the rollout."""
        return name in self._names

    def conversation(self) -> list[dict[str, Any]]:
        """The input, the instructions before it."""
        instructions = self.request.get("instructions")
        first = [{"type": "message", "role": "system", "content": instructions}] if instructions else []
        return [*first, *self.request["input"]]

    def say(self, text: str) -> None:
        """Record what the agent said, if it is anything."""
        if text:
            self.record(message(text))

    def record(self, *items: dict[str, Any]) -> None:
        """Record items as they are; a call of the harness's own goes in together with its output. From any thread."""
        self._items.extend(items)

    def own(self, call_id: str, name: str, arguments: Any, output: str) -> None:
        """Record a call that the harness dealt with itself; one that the environment ran is recorded already."""
        if (call_id, name) in self._ran:
            return
        call_id = self._unused(call_id)
        self.record(_call(call_id, name, arguments))
        self.record({"type": "function_call_output", "call_id": call_id, "output": output})

    def expect(self, call_id: str, name: str, arguments: Any) -> None:
        """The model asked for this; the call that follows may no longer know its id."""
        self._expected.append((call_id, name, arguments))

    async def call(self, name: str, arguments: Any, call_id: str | None = None) -> str:
        """Run a tool of the environment: what it gave, or what went wrong, as an agent reads it.

        ``arguments`` are a mapping, or JSON as a model wrote it.
        """
        if self._over:
            raise asyncio.CancelledError("the rollout is over")
        given = call_id or self._expectation(name, arguments)
        call_id = self._unused(given)
        self._ran.add((given, name))
        future: asyncio.Future[str] = self._loop.create_future()
        self._waiting[call_id] = future
        self.record(_call(call_id, name, arguments))
        self.asked.set()
        return await future

    def call_from_thread(self, name: str, arguments: Any, call_id: str | None = None) -> str:
        """``call`` for harnesses that work in threads of their own."""
        return asyncio.run_coroutine_threadsafe(self.call(name, arguments, call_id), self._loop).result()

    def take(self) -> list[dict[str, Any]]:
        """What was recorded since the last time."""
        items, self._items = self._items, []
        self.asked.clear()
        return items

    def hand_out(self, conversation: list[dict[str, Any]]) -> None:
        """Give the calls that wait the outputs that the conversation holds by now."""
        outputs = {item["call_id"]: item["output"] for item in conversation if item.get("type") == _OUTPUT}
        for call_id in self._waiting.keys() & outputs.keys():
            future = self._waiting.pop(call_id)
            if not future.done():
                future.set_result(outputs[call_id])

    def close(self) -> None:
        """Nobody will run calls any more."""
        self._over = True
        for future in self._waiting.values():
            future.cancel()

    def _expectation(self, name: str, arguments: Any) -> str:
        same = [each for each in self._expected if each[1] == name]
        exact = [each for each in same if each[2] == arguments]
        for each in (exact or same)[:1]:
            self._expected.remove(each)
            return str(each[0])
        return f"call_{len(self._ids) + 1}"

    def _unused(self, call_id: str) -> str:
        """``call_id``, or one like it where the conversation has it already: an output must find its call."""
        unique, number = call_id, 1
        while unique in self._ids:
            number += 1
            unique = f"{call_id}-{number}"
        self._ids.add(unique)
        return unique


_OUTPUT = "function_call_output"


def message(text: str) -> dict[str, Any]:
    """An assistant's message item."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    fields = {"type": "message", "id": f"msg_{uuid4().hex}", "role": "assistant", "status": "completed"}
    return {**fields, "content": content}


def only_text(item: Mapping[str, Any]) -> str:
    """The text of a message. Raises RolloutFailed for an image or a file, which would be lost."""
    content = item.get("content")
    for part in content if isinstance(content, list) else ():
        if part.get("type") not in ("input_text", "output_text", "text", "refusal"):
            message = f"this agent takes text, and the task's input holds a {part.get('type')}"
            raise RolloutFailed(message, kind="agent_error", terminal=True)
    return message_text(dict(item))


def as_text(conversation: list[dict[str, Any]]) -> str:
    """A conversation for a harness that takes one text: one message as it is, several with who said each."""
    if len(conversation) == 1:
        return only_text(conversation[0])
    return "\n\n".join(line for item in conversation if (line := _line(item)))


def _line(item: Mapping[str, Any]) -> str:
    match item.get("type") or "message":
        case "message":
            return f"[{item['role']}] {only_text(item)}"
        case "function_call":
            return f"[tool call] {item['name']}({item['arguments']})"
        case "function_call_output":
            return f"[tool result] {content_text(item['output'])}"
    return ""


def _call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else codec.dumps(arguments).decode()
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": text}


def _granted(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type", "function") != "function":
        message = f"the task offers a {tool.get('type')} tool, which the environment cannot run for this agent"
        raise RolloutFailed(message, kind="agent_error", terminal=True)
    parameters = tool.get("parameters") or {"type": "object", "properties": {}}
    return {"name": tool["name"], "description": tool.get("description") or "", "parameters": parameters}
