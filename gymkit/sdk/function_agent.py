"""A Python function as an agent."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from gymkit.agents.function import Function, FunctionAgent, FunctionAgentConfig
from gymkit.errors import ConfigError
from gymkit.servers.agent import AgentServer
from gymkit.servers.capture import Capture
from gymkit.servers.route import Route
from gymkit.wire.problems import sentences

if TYPE_CHECKING:
    from gymkit.agents.framework import Build
    from gymkit.sdk.harness_agent import HarnessAgent
    from gymkit.sdk.models import Model

FrameworkName = Literal["langgraph", "openai-agents", "pydantic-ai", "smolagents"]
"""What ``Agent.adapt`` knows."""


class Agent:
    """An agent that is a Python function, sync or async, or a generator.

    Parameters
    ----------
    function:
        Takes the request of the Responses API that a service would get (``params["input"]`` is the conversation so
        far) and returns what the agent does next: a text, which is its answer; a tool call ``(name, {arguments})``; a
        list of calls; items; or a whole response. It is called again with the calls' outputs until it gives an answer.
        A generator is started once a rollout instead: it yields calls, gets their outputs (JSON is parsed, an error is
        what the environment said), and returns its answer; an async generator yields it last.
    name:
        The agent's name on the rows, by default the function's.
    concurrency:
        Rollouts in flight, at most. Functions that are not async run in threads.
    max_steps:
        Steps of one rollout, at most; None sets no bound but the time.
    run_timeout_secs:
        Seconds that a whole rollout may take, from the moment it has its concurrency slot.

    What the function raises is a failure of the rollout, with its line, never a reward of 0. It sees nothing of the
    task but the request. Raises ConfigError for a value that cannot be used.

    ``Agent.adapt`` takes an agent that was written with a framework, ``Agent.command`` a command-line program.
    """

    def __init__(
        self,
        function: Function,
        *,
        name: str | None = None,
        concurrency: int = 32,
        max_steps: int | None = None,
        run_timeout_secs: float = 2100.0,
    ) -> None:
        if not callable(function):
            raise ConfigError(f"Agent: {function!r:.80} is no function; a service at a URL is a RemoteAgent")
        bounds = {"concurrency": concurrency, "max_steps": max_steps, "run_timeout_secs": run_timeout_secs}
        try:
            self.config = FunctionAgentConfig.model_validate(bounds)
        except ValidationError as error:
            raise ConfigError(f"Agent: {'; '.join(sentences(error, bounds))}") from None
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__).strip("<>")

    @staticmethod
    def adapt(framework: FrameworkName, build: Build, model: Model | str | Route, **bounds: Any) -> HarnessAgent:
        """An agent that is written with a framework already, on ``model`` and with the environment's tools.

        Parameters
        ----------
        framework:
            ``"langgraph"``, ``"openai-agents"``, ``"pydantic-ai"`` or ``"smolagents"``; each is an extra of that name.
        build:
            Makes the agent, once a rollout, so that rollouts share nothing: ``build(kit)`` finds ``kit.model`` and
            ``kit.tools`` as objects of the framework's own, ``kit.folder``, which is private to the rollout,
            ``kit.request``, and ``kit.skills``, the folder of the run's skills if it has any. It returns an ``Agent``
            of the SDK, a compiled graph whose state has ``messages``, or a ``ToolCallingAgent`` or ``CodeAgent``.
            Tools of the agent's own may stand beside the environment's.
        model:
            A ``gk.Model``, the URL of a model server, or a route to one. Whatever the framework asks it is recorded
            as the rollout's.
        bounds:
            ``name``, ``concurrency``, ``max_steps`` and ``run_timeout_secs``, as above. A step ends where tools of the
            environment are called, or with the answer.

        What the framework raises is a failure of the rollout, never a reward of 0. Raises ConfigError with the nearest
        name, and MissingExtra.
        """
        from gymkit.sdk.harness_agent import adapted

        return adapted(framework, build, model, **bounds)

    @staticmethod
    def command(
        argv: Sequence[str],
        model: Model | str | Route | None = None,
        *,
        template: str = "{conversation}",
        answer: str | None = None,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        skills_dir: str = "skills",
        output_limit: int = 1_000_000,
        **bounds: Any,
    ) -> HarnessAgent:
        """An agent that is a program: it is run once a rollout, and what it prints is its answer.

        Parameters
        ----------
        argv:
            The program and its arguments, no shell between. ``{prompt}`` in one becomes the prompt, ``{prompt_file}``
            the path of a file that holds it; without either the prompt comes on stdin. ``{model}``, ``{base_url}`` (for
            programs that do not read ``OPENAI_BASE_URL``), ``{folder}``, ``{mcp_url}`` and ``{mcp_config}`` are filled
            in as well.
        model:
            What it finds behind ``OPENAI_BASE_URL`` and ``ANTHROPIC_BASE_URL`` (keys are dummies); its calls are
            recorded. None for a program that brings a model of its own, which leaves scores only.
        template:
            The prompt: ``{conversation}`` is what the task says, ``{tools}`` the JSON of its tools.
        answer:
            The field of the printed JSON that holds the answer (``"result"``); None: all that is printed.
        env, files:
            Variables laid over its environment, and files put into its working folder. Of this process's variables it
            gets those that name paths and languages, no key; its home and its folders are private to the rollout.
        skills_dir:
            Where in its working folder the run's skills are put (``rollouts(skills=…)``), for example
            ``".claude/skills"``.
        output_limit:
            Bytes that it may print.
        bounds:
            As in ``adapt``. At the end of a rollout its whole process group is killed.

        The environment's tools are an MCP server at ``GYMKIT_MCP_URL``. An exit status that is not 0 is a failure with
        what was printed to stderr. Raises ConfigError for a program that is not there.
        """
        from gymkit.sdk.harness_agent import commanded

        settings = {
            "argv": list(argv),
            "template": template,
            "answer": answer,
            "env": dict(env or {}),
            "files": dict(files or {}),
            "skills_dir": skills_dir,
            "output_limit": output_limit,
        }
        return commanded(settings, model, **bounds)

    @property
    def concurrency(self) -> int:
        """Rollouts in flight, at most."""
        return self.config.concurrency

    @property
    def run_timeout(self) -> float:
        """Seconds that one rollout may take."""
        return self.config.run_timeout_secs

    def settings(self) -> dict[str, Any]:
        """What results depend on: the bounds, and the function's source where it can be had."""
        return {
            "type": "function_agent",
            **self.config.model_dump(exclude={"concurrency"}),
            "function": getattr(self.function, "__qualname__", type(self.function).__qualname__),
            "source": digest(self.function),
        }

    def server(self, resources: Route, capture: Capture | None = None) -> AgentServer[Any]:
        """The agent server; every ``gk.Model`` that the function asks is recorded in ``capture``."""
        return FunctionAgent(self.name, self.config, self.function, resources, capture=capture)

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"


def digest(function: Any) -> str | None:
    """16 hex digits of the function's source; None for one that has none, as in an interactive Python."""
    try:
        source = inspect.getsource(function if inspect.isroutine(function) else type(function))
    except (OSError, TypeError):
        return None
    return hashlib.sha256(source.encode()).hexdigest()[:16]
