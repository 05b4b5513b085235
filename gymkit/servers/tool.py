"""A tool of an environment: a Python function that an agent may ask for by name, with arguments that are checked."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

Method = TypeVar("Method", bound=Callable[..., Any])

RESERVED = frozenset({"verify", "seed_session", "close_session", "aggregate_metrics", "reverify_mode", "mcp"})
"""Routes of a resources server that are not tools."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MARK = "__gymkit_tool__"


def tool(method: Method) -> Method:
    """Mark a method of a resources server as a tool: ``def add(self, state, count: int) -> ...``, sync or async.

    The parameters after ``state`` are the tool's arguments; their annotations are enforced, and the docstring is its
    description. What it returns is sent to the agent as JSON.
    """
    setattr(method, _MARK, True)
    return method


def is_tool_name(name: object) -> bool:
    """Whether ``name`` may be sent to a resources server as a tool: one path segment, and not a route of its own."""
    return isinstance(name, str) and name not in RESERVED and _NAME.fullmatch(name) is not None


def unknown_tool(name: object, known: list[str] | None = None) -> str:
    """The sentence an agent gets for a tool that is not there."""
    served = f"; this environment serves {', '.join(known)}" if known else ""
    return f"unknown tool {name!r}{served}"


class Tool:
    """One tool of one server: its name, its arguments as a model, and the call."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.name = call.__name__
        self.description = inspect.cleandoc(call.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        self._call = call
        self._arguments = _arguments_model(call)

    async def __call__(self, state: Any, arguments: dict[str, Any]) -> Any:
        """Run the tool. Raises pydantic's ValidationError for arguments that do not fit."""
        checked = self._arguments.model_validate(arguments)
        result = self._call(state, **{name: getattr(checked, name) for name in type(checked).model_fields})
        return await result if isinstance(result, Awaitable) else result

    def schema(self) -> dict[str, Any]:
        """The tool as the Responses API declares it."""
        parameters = self._arguments.model_json_schema()
        parameters.pop("title", None)
        for field in parameters.get("properties", {}).values():
            field.pop("title", None)
        parameters.setdefault("required", [])
        parameters["additionalProperties"] = False
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
            "strict": True,
        }


def tools_of(server: object) -> dict[str, Tool]:
    """The marked methods of ``server``, by name, in the order they are written."""
    names = [name for base in reversed(type(server).__mro__) for name in vars(base)]
    marked = [getattr(server, name) for name in dict.fromkeys(names) if hasattr(getattr(type(server), name), _MARK)]
    return {method.__name__: Tool(method) for method in marked}


def problems(error: ValidationError) -> list[dict[str, Any]]:
    """A validation error as the ``detail`` of a 422, without the values that were sent."""
    return [
        {"loc": list(each["loc"]), "msg": each["msg"], "type": each["type"]}
        for each in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def _arguments_model(call: Callable[..., Any]) -> type[BaseModel]:
    signature = inspect.signature(call, eval_str=True)
    parameters = list(signature.parameters.values())[1:]
    fields: dict[str, Any] = {
        each.name: (each.annotation, ... if each.default is inspect.Parameter.empty else Field(default=each.default))
        for each in parameters
    }
    return create_model(f"{call.__name__}_arguments", __config__=ConfigDict(extra="ignore"), **fields)
