"""What a Python function says, as a response: text, tool calls in short forms, items, or a whole response."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from gymkit.agents.failure import RolloutFailed
from gymkit.errors import WireError
from gymkit.wire import codec
from gymkit.wire.responses import check_response

FORMS = "a text, a tool call (name, {arguments}), a list of calls or items, or a Responses API response"


class Said:
    """The steps of one function in one rollout; gives calls their ids."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._calls = 0

    def response(self, given: Any) -> dict[str, Any]:
        """``given`` as a checked response. Raises RolloutFailed for anything else."""
        whole = isinstance(given, Mapping) and "output" in given and "type" not in given
        fields = dict(given) if whole else {"output": self.items(given)}
        response = {
            "id": f"resp_{uuid4().hex}",
            "created_at": time.time(),
            "model": self._agent,
            "object": "response",
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **fields,
        }
        try:
            check_response(response)
        except WireError as error:
            raise self._refused("; ".join(error.problems)) from error
        return response

    def items(self, given: Any) -> list[dict[str, Any]]:
        """``given`` as items. Raises RolloutFailed."""
        if isinstance(given, list):
            return [self._item(each) for each in given]
        return [self._item(given)]

    def _item(self, given: Any) -> dict[str, Any]:
        match given:
            case str():
                return _message(given)
            case (str(name), Mapping() as arguments):
                return self._call(name, arguments)
            case {"type": "function_call", "name": str(name), "arguments": Mapping() as arguments}:
                return {**given, **self._call(name, arguments, given.get("call_id"))}
            case {"type": str()}:
                return dict(given)
            case {"name": str(name), "arguments": Mapping() as arguments}:
                return self._call(name, arguments, given.get("call_id"))
        raise self._refused(f"it gave {given!r:.100}, not {FORMS}")

    def _call(self, name: str, arguments: Mapping[str, Any], call_id: str | None = None) -> dict[str, Any]:
        self._calls += 1
        call_id = call_id or f"call_{self._calls}"
        try:
            text = codec.dumps(dict(arguments)).decode()
        except (TypeError, ValueError) as error:
            raise self._refused(f"the arguments of {name} are no JSON: {error}") from error
        return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": text}

    def _refused(self, problem: str) -> RolloutFailed:
        message = f"the function of {self._agent} gave something that is no step: {problem}"
        return RolloutFailed(message, kind="invalid_response", terminal=True)


def _message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{uuid4().hex}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
