"""An environment that is written in cells: ``Env.define`` makes one, decorators add to it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gymkit.errors import ConfigError
from gymkit.resources import ALIASES, SHIPPED
from gymkit.resources.defined import Defined
from gymkit.sdk import package, task_rows
from gymkit.sdk.agents import Agent
from gymkit.sdk.collection import Collection, TaskSource
from gymkit.sdk.env import Env

if TYPE_CHECKING:
    import pandas as pd

Function = TypeVar("Function", bound=Callable[..., Any])

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class DefinedEnv(Env):
    """An environment of your own, made by ``Env.define``. A cell that is run again replaces what it added.

    ``functions`` of plain Python run in a thread and may block; ``async def`` ones run on gymkit's loop. The functions
    stay what they are: call them yourself to try them.
    """

    def __init__(self, name: str, *, tasks: TaskSource | pd.DataFrame, expose_tools_over_mcp: bool = False) -> None:
        if _NAME.fullmatch(name) is None:
            raise ConfigError(f"Env.define: {name!r} cannot be a name: letters, digits, _ and -, a letter first")
        if name in SHIPPED or name in ALIASES:
            raise ConfigError(f"Env.define: {name!r} is the name of an environment that comes with gymkit")
        self._given = task_rows.given(tasks)
        self.definition = Defined(f"{name}_resources_server", expose_tools_over_mcp=expose_tools_over_mcp)
        """The server, and the functions that were added to it."""
        self._exposed = expose_tools_over_mcp
        super().__init__(self.definition)
        self.name = name

    def tool(self, function: Function) -> Function:
        """Add a tool: ``def shuffle(state, letters: str) -> str``, sync or async.

        What comes after ``state`` are its arguments: their annotations are the schema that agents see and that is
        enforced, the docstring describes the tool and each argument (``Args:``). The result goes to the agent as JSON,
        and so does whatever it raises. Raises ConfigError for a function that agents could not call.
        """
        self.definition.add_tool(function)
        self.__dict__.pop("rows", None)  # the tools are in them
        return function

    def verify(self, function: Function) -> Function:
        """Set the verifier: ``def check(state, task, response) -> float``, sync or async.

        ``response`` is the whole trajectory as one Responses API object. It returns the reward, by convention 0 to 1,
        or a dict with ``reward`` and any of ``reward_components``, ``mask_sample``, ``failure_kind``,
        ``failure_reason``; other keys become fields of the row. What it raises masks the rollout (``verifier_error``).
        """
        self.definition.set_role("verify", function)
        return function

    def seed(self, function: Function) -> Function:
        """Set what a rollout starts with: ``def start(task) -> state``, sync or async; by default an empty dict.

        Each rollout gets a deep copy of what it returns.
        """
        self.definition.set_role("seed", function)
        return function

    @property
    def source(self) -> TaskSource:
        """The task rows as agents get them: each with ``responses_create_params``, the tools in it."""
        return task_rows.asked(self._given, [tool.schema() for tool in self.definition.tools.values()])

    def collection(self, agent: Agent, **options: Any) -> Collection:
        """The run that ``rollouts`` does, not begun. Raises ConfigError while there is no verifier."""
        if "verify" not in self.definition.roles:
            raise ConfigError(f"{self!r} cannot score a rollout: add a verifier with @….verify")
        return super().collection(agent, **options)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the environment as a package that others can open (``Env("anagram/")``) and ``gymkit env start``.

        ``folder`` gets a module with the text of your functions and of what they use, the tasks, a configuration and a
        README; an earlier save there is replaced. Nothing is written unless what was written, read back, is the same
        environment. Raises ConfigError for a function whose text cannot be had, or that reads what only this notebook
        has (a list, a DataFrame, a client), with its name.
        """
        return package.save(self.name, self.definition, self.rows, Path(folder), expose_tools_over_mcp=self._exposed)

    def __repr__(self) -> str:
        tools = ", ".join(self.definition.tools) or "none yet"
        verifier = "" if "verify" in self.definition.roles else ", no verifier yet"
        return f"<Env {self.name}: {len(self._given)} tasks, tools: {tools}{verifier}>"
