"""The tools of a scenario: Python functions, or those of an environment, whose verifier then is a check."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.servers.tool import Tool, problems, unknown_tool
from gymkit.usersim.chat import items_of
from gymkit.usersim.runtime import Message
from gymkit.wire import codec

ChatTool = dict[str, Any]
"""A tool as Chat Completions declares it."""


class Toolbox(Protocol):
    """The tools of one episode."""

    tools: tuple[ChatTool, ...]
    """What the assistant may call."""

    async def open(self) -> None:
        """Begin. Raises ServerError."""

    async def call(self, name: str, arguments: str) -> str:
        """Run a tool on ``arguments``, JSON as it was written; an error is an output too. Raises ServerError."""

    async def score(self, messages: Sequence[Message]) -> float | None:
        """What the environment makes of the conversation; None for tools without a verifier. Raises ServerError."""

    async def close(self) -> None:
        """Let go."""


class Functions:
    """Python functions as tools: annotations are enforced, the docstring's first paragraph is the description."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self._tools = {each.__name__: Tool(_with_state(each)) for each in functions}
        self.tools = tuple(_chat_tool(tool.schema()) for tool in self._tools.values())

    async def open(self) -> None:
        """Nothing to begin."""

    async def call(self, name: str, arguments: str) -> str:
        """See Toolbox."""
        if name not in self._tools:
            return _error(unknown_tool(name, list(self._tools)), 404)
        parsed = parsed_arguments(arguments)
        if isinstance(parsed, str):
            return parsed
        try:
            tool = self._tools[name]
            result = await tool(None, tool.checked(parsed))
        except ValidationError as error:
            return _error(problems(error), 422)
        except Exception as error:  # noqa: BLE001 - a tool that raises is a tool that answers with an error
            return _error(f"{type(error).__name__}: {error}", 500)
        return result if isinstance(result, str) else codec.dumps(result).decode()

    async def score(self, messages: Sequence[Message]) -> float | None:
        """Functions judge nothing."""
        return None

    async def close(self) -> None:
        """Nothing to let go of."""


class EnvironmentTools:
    """The tools of a task of an environment, in a session of its own; the environment's verifier scores the end."""

    def __init__(self, route: Route, row: Mapping[str, Any]) -> None:
        self._route = route
        self._row = dict(row)
        self._jar = CookieJar()
        declared = row["responses_create_params"].get("tools") or ()
        self.tools = tuple(_chat_tool(tool) for tool in declared)

    async def open(self) -> None:
        """Seed a session. Raises ServerError."""
        (await self._post("/seed_session", self._row)).expect_ok()

    async def call(self, name: str, arguments: str) -> str:
        """See Toolbox."""
        parsed = parsed_arguments(arguments)
        return parsed if isinstance(parsed, str) else (await self._post(f"/{name}", parsed)).text

    async def score(self, messages: Sequence[Message]) -> float | None:
        """The verifier's reward. Raises ServerError."""
        first = next((index for index, each in enumerate(messages) if each["role"] == "assistant"), len(messages))
        params = {**self._row["responses_create_params"], "input": items_of(messages[:first])}
        body = {**self._row, "responses_create_params": params, "response": _response(messages[first:])}
        reply = (await self._post("/verify", body)).expect_ok()
        return float(reply.json_object()["reward"])

    async def close(self) -> None:
        """Let go of the connections."""
        await self._route.aclose()

    async def _post(self, path: str, body: Mapping[str, Any]) -> Reply:
        reply = await self._route.post(path, body, cookies=self._jar, timeout=60.0)
        self._jar.take(reply)
        return reply


def parsed_arguments(text: str) -> dict[str, Any] | str:
    """The arguments of a call, or the output that says what is wrong with them."""
    try:
        parsed = codec.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        return _error(f"the arguments are not JSON: {error}", 422)
    return parsed if isinstance(parsed, dict) else _error("the arguments must be a JSON object", 422)


def _with_state(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with the leading parameter that tools of an environment have."""
    import functools
    import inspect

    @functools.wraps(function)
    def call(_state: Any, **arguments: Any) -> Any:
        return function(**arguments)

    own = inspect.signature(function, eval_str=True)
    leading = inspect.Parameter("_state", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own.parameters.values()]
    call.__signature__ = own.replace(parameters=[leading, *parameters])  # type: ignore[attr-defined]
    return call


def _chat_tool(tool: Mapping[str, Any]) -> ChatTool:
    kept = {key: tool[key] for key in ("name", "description", "parameters") if tool.get(key) is not None}
    return {"type": "function", "function": kept}


def _error(detail: Any, status: int) -> str:
    return codec.dumps({"error": detail, "status": status}).decode()


def _response(messages: Sequence[Message]) -> dict[str, Any]:
    """What the assistant did, as one response; the user's later words stand between its own."""
    output = []
    for number, item in enumerate(items_of(messages)):
        if item["type"] == "message" and item["role"] == "assistant":
            content = [{"type": "output_text", "text": item["content"], "annotations": []}]
            item = {**item, "id": f"msg_{number}", "status": "completed", "content": content}
        output.append(item)
    return {
        "id": "resp_conversation",
        "object": "response",
        "created_at": 0.0,
        "model": "assistant",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


Check = Callable[[Any], "bool | float | Awaitable[bool | float | None] | None"]
"""A check of a finished conversation (a ``Talk``): passed or not, a score from 0 to 1, or None where it cannot tell."""
