"""A tool of an environment: a Python function that an agent may ask for by name, with arguments that are checked."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from gymkit.wire import codec

Method = TypeVar("Method", bound=Callable[..., Any])

RESERVED = frozenset({"verify", "seed_session", "close_session", "aggregate_metrics", "reverify_mode", "mcp"})
"""Routes of a resources server that are not tools."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MARK = "__gymkit_tool__"


def tool(method: Method) -> Method:
    """Mark a method of a resources server as a tool: ``def add(self, state, count: int) -> ...``, sync or async.

    The parameters after ``state`` are the tool's arguments; their annotations are enforced, and the docstring is its
    description and theirs (as a Google, NumPy or Sphinx docstring has them). What it returns is sent to the agent as
    JSON.
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
    """One tool of one server: its name, its arguments as a model, and the call.

    ``threads`` run a plain function, which may then block; without them it runs on the server's loop.
    """

    def __init__(self, call: Callable[..., Any], threads: Executor | None = None) -> None:
        self.name = call.__name__
        self.description, described = _described(call)
        self._call = call
        self._threads = threads
        self._parameters = list(inspect.signature(call, eval_str=True).parameters.values())[1:]
        self._arguments = _arguments_model(self.name, self._parameters, described)

    def checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments to call with, defaults filled in. Raises pydantic's ValidationError for what does not fit."""
        model = self._arguments.model_validate(arguments)
        fields = type(model).model_fields
        return {each.name: getattr(model, field) for each, field in zip(self._parameters, fields, strict=True)}

    async def __call__(self, state: Any, arguments: Mapping[str, Any]) -> Any:
        """Run the tool with checked arguments."""
        return await called(self._call, state, threads=self._threads, **arguments)

    def schema(self) -> dict[str, Any]:
        """The tool as the Responses API declares it; ``strict`` where its parameters are as strict mode wants them."""
        parameters = self._arguments.model_json_schema()
        parameters.pop("title", None)
        for field in parameters.setdefault("properties", {}).values():
            field.pop("title", None)
        parameters.setdefault("required", [])
        parameters["additionalProperties"] = False
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
            "strict": is_strict(parameters),
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


async def called(function: Callable[..., Any], *args: Any, threads: Executor | None = None, **kwargs: Any) -> Any:
    """The result of ``function``, awaited where it is a coroutine's; a plain function runs in ``threads``, if any."""
    work = partial(_tamed, function, *args, **kwargs)
    if threads is None or inspect.iscoroutinefunction(function):
        result = work()
    else:
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(threads, contextvars.copy_context().run, work)
    if not isinstance(result, Awaitable):
        return result
    try:
        return await result
    except SystemExit as error:
        raise _as_error(error) from error


def _tamed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call it. What it may not raise here, since it would hang or end the event loop, becomes an error like others."""
    try:
        return function(*args, **kwargs)
    except (StopIteration, SystemExit) as error:
        raise _as_error(error) from error


def _as_error(error: BaseException) -> RuntimeError:
    return RuntimeError(f"{type(error).__name__}{error.args or ''}").with_traceback(error.__traceback__)


class ToolAnswer(NamedTuple):
    """What a tool call is answered with."""

    status: int
    """HTTP status; from 400 on, ``body`` says what was wrong."""
    body: bytes
    """JSON, for the agent to read."""


def encoded(result: Any) -> bytes:
    """What a tool returned, as JSON. Raises TypeError or ValueError for what cannot be."""
    try:
        return codec.dumps(result)
    except TypeError:
        return codec.dumps(json.loads(json.dumps(result, default=_as_json)))


def _as_json(value: Any) -> Any:
    """numpy's and pandas' values as lists and numbers, pydantic's models as objects."""
    if callable(convert := getattr(value, "tolist", None)):
        return convert()
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


def _described(call: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The first paragraph of the docstring, and what it says of each argument."""
    text = inspect.cleandoc(call.__doc__ or "")
    if "\n" not in text:
        return text, {}
    import docstring_parser  # 12 ms that a tool with one line of docstring does without

    try:
        found = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text.partition("\n\n")[0].replace("\n", " "), {}
    summary = found.short_description or ""
    if not found.blank_after_short_description and found.long_description:
        summary = f"{summary} {found.long_description.partition(chr(10) * 2)[0]}"
    described = {each.arg_name: each.description for each in found.params if each.description}
    return " ".join(summary.split()), {name: " ".join(words.split()) for name, words in described.items()}


def _arguments_model(name: str, parameters: list[inspect.Parameter], described: Mapping[str, str]) -> type[BaseModel]:
    """The arguments as a model. Its fields are numbered, as an argument may be called like a method of models."""
    fields: dict[str, Any] = {}
    for number, each in enumerate(parameters):
        options: dict[str, Any] = {"alias": each.name}
        if each.name in described:
            options["description"] = described[each.name]
        if each.default is not inspect.Parameter.empty:
            options["default"] = each.default
        fields[f"argument_{number}"] = (each.annotation, Field(**options))
    return create_model(f"{name}_arguments", __config__=ConfigDict(extra="ignore"), **fields)


def is_strict(schema: Any) -> bool:
    """Whether every object in ``schema`` names all it may hold and requires it."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object":
        properties = schema.get("properties") or {}
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
    return all(is_strict(each) for key, each in schema.items() if key not in ("default", "enum", "const"))
