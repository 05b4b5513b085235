"""An environment made of functions: tools, a verifier and a seed are added one by one, and replaced by their names.

The same resources server as any other. What a notebook needs beside: a plain function runs in a thread, so it may
block; every rollout's state is a copy of its own; and a verifier that raises masks its rollout, which was not measured.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import cached_property
from types import TracebackType
from typing import Any, Final

from pydantic.errors import PydanticUserError

from gymkit.errors import ConfigError, JudgeFailed, JudgeUnparseable, ServerError
from gymkit.nearest import closest
from gymkit.servers.http import Refused
from gymkit.servers.resources import ResourcesServer
from gymkit.servers.session import Session
from gymkit.servers.tool import RESERVED, Tool, ToolAnswer, called, is_tool_name
from gymkit.servers.verdict import REASON, Verdict
from gymkit.wire import codec
from gymkit.wire.tasks import RESERVED_KEYS, TaskRow, strip_result_fields

THREADS: Final = 64
"""Plain functions of one environment that run at once, at most."""

Function = Callable[..., Any]

_SHAPES: Final = {
    "verify": "def check(state, task, response) -> float",
    "seed": "def start(task) -> state",
}
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_STARS: Final[Mapping[Any, str]] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class DefinedTask(TaskRow):
    """A task as a function sees it: ``task.word``, or ``task["word"]`` for names that are no attributes."""

    def __getitem__(self, name: str) -> Any:
        fields = self._fields()
        if name not in fields:
            raise KeyError(_no_field(name, fields))
        return getattr(self, name) if name in type(self).model_fields else fields[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)  # type: ignore[misc]  # pydantic hides it from type checkers
        except AttributeError:
            if name.startswith("_"):  # what copies and printers look for
                raise
            raise AttributeError(_no_field(name, self._fields())) from None

    def _fields(self) -> dict[str, Any]:
        return {**self.__dict__, **(self.model_extra or {})}


class Defined(ResourcesServer[Any]):
    """The server of one such environment."""

    implementation = "defined"
    Task = DefinedTask

    def __init__(self, name: str, *, expose_tools_over_mcp: bool = False) -> None:
        super().__init__(name, expose_tools_over_mcp=expose_tools_over_mcp)
        self.functions: dict[str, Function] = {}
        """The tools' functions by name."""
        self.roles: dict[str, Function] = {}
        """The functions that are ``verify`` and ``seed``."""

    def add_tool(self, function: Function) -> None:
        """Serve ``function`` as a tool. Raises ConfigError for one that cannot be a tool."""
        name = _name(function, "a tool")
        if not is_tool_name(name):
            why = "is a route of the server" if name in RESERVED else "has more than letters, digits and _"
            raise ConfigError(f"a tool cannot be called {name!r}, which {why}: rename the function")
        _check_parameters(function)
        try:
            tool = Tool(function, self._threads)
            tool.schema()
        except (NameError, TypeError, PydanticUserError) as error:
            reason = str(error).partition("\n")[0]
            raise ConfigError(f"the arguments of the tool {name} have no JSON schema: {reason}") from error
        self.tools[name] = tool
        self.functions[name] = function

    def set_role(self, role: str, function: Function) -> None:
        """Let ``function`` be the ``verify`` or the ``seed``. Raises ConfigError for other parameters than it gets."""
        shape = _SHAPES[role]
        try:
            inspect.signature(function).bind(*shape[shape.index("(") + 1 : shape.index(")")].split(", "))
        except (TypeError, ValueError) as error:
            name = _name(function, f"@{role}")
            raise ConfigError(f"{name} cannot be the {role} of an environment ({error}): {shape}") from None
        self.roles[role] = function

    def adopt(self, other: Defined) -> None:
        """Take over the functions of ``other``, where the same environment is served under another name."""
        for function in other.functions.values():
            self.add_tool(function)
        self.roles.update(other.roles)

    async def call_tool(self, session: Session[Any], name: str, arguments: Any) -> ToolAnswer:
        """Run a tool, one call of a rollout after the other: in threads, two at once would meet in its state."""
        session.turn = session.turn or asyncio.Lock()
        async with session.turn:
            return await super().call_tool(session, name, arguments)

    async def seed(self, task: Any) -> Any:
        """What the seed returned, copied so that no two rollouts share it; a fresh dict without one. Raises Refused."""
        if (start := self.roles.get("seed")) is None:
            return {}
        try:
            return self._copied(start, await called(start, task, threads=self._threads))
        except Exception as error:
            self._tell("the seed", error)
            raise Refused(500, _reason(start, error), kind="seed_error") from error

    @staticmethod
    def _copied(start: Function, state: Any) -> Any:
        if state is None:
            raise TypeError(f"{start.__name__} returned None: it must return the state of the rollout")
        try:
            return deepcopy(state)
        except Exception as error:
            raise TypeError(
                f"the state that {start.__name__} returned cannot be copied ({type(error).__name__}: {error}), so it "
                "could be shared by rollouts; give its class a __deepcopy__ that makes a fresh one"
            ) from error

    async def verdict(self, state: Any, task: Any, response: dict[str, Any]) -> Verdict:
        """What the verifier says; whatever it raises masks the rollout, since nobody measured it."""
        verify = self.roles.get("verify")
        if verify is None:
            raise Refused(500, f"{self.name} has no verifier: add one with @….verify", kind="no_verifier")
        try:
            own = codec.loads(codec.dumps(response))  # what it does to its copy is not in the record
            return Verdict.of(await called(verify, state, task, own, threads=self._threads))
        except (JudgeFailed, JudgeUnparseable, ServerError):
            raise
        except Exception as error:  # noqa: BLE001 - somebody's code: it fails its rollout, not the run
            self._tell("the verifier", error)
            return Verdict.masked("verifier_error", _reason(verify, error)[:REASON])

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(THREADS, thread_name_prefix=self.name)


def _no_field(name: str, fields: Mapping[str, Any]) -> str:
    """Why ``task.name`` is an error: the task's own fields by name, never their values."""
    own = sorted(strip_result_fields(fields).keys() - RESERVED_KEYS)
    near = closest(name, fields)
    hint = f"; did you mean {near!r}?" if near else ""
    return f"the task has no field {name!r}, only {', '.join(own)}{hint}"


def _name(function: Function, role: str) -> str:
    name = getattr(function, "__name__", None)
    if not callable(function) or not isinstance(name, str):
        raise ConfigError(f"{role} must be a function with a name, not {function!r:.60}")
    return name


def _check_parameters(function: Function) -> None:
    """Refuse what an agent could not call. Raises ConfigError."""
    name = function.__name__
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise ConfigError(f"the tool {name} cannot say what it takes: {error}; wrap it in a function") from None
    first = parameters[0] if parameters else None
    if first is None or first.name != "state" or first.kind not in _POSITIONAL:
        raise ConfigError(f"the first parameter of the tool {name} must be state: def {name}(state, …)")
    for each in parameters[1:]:
        if stars := _STARS.get(each.kind):
            raise ConfigError(f"the tool {name} takes {stars}{each.name}: agents are told each argument by name")
        if each.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise ConfigError(f"the tool {name} takes {each.name} by position only; arguments come by name")
        if each.annotation is inspect.Parameter.empty:
            raise ConfigError(
                f"the tool {name} does not say what {each.name} is; the schema that agents see comes from annotations: "
                f"def {name}(state, {each.name}: str)"
            )


def _reason(function: Function, error: Exception) -> str:
    """What happened, and where in the verifier or the seed."""
    line = _line(function, error.__traceback__)
    place = f" (line {line} of {function.__name__})" if line else f" ({function.__name__})"
    said = f"{function.__name__} {error}" if line is None and str(error).startswith("gave ") else ""
    return said or f"{type(error).__name__}: {error}{place}"


def _line(function: Function, traceback: TracebackType | None) -> int | None:
    """The line of ``function`` that was running, counted from its ``def`` or its first decorator; None for none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    found = None
    while traceback is not None:
        if traceback.tb_frame.f_code is code:
            found = traceback.tb_lineno - code.co_firstlineno + 1
        traceback = traceback.tb_next
    return found
