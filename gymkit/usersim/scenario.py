"""A scenario of one's own: who the user is and what it wants, and how one sees whether it got it. Needs no extra."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gymkit.errors import ConfigError
from gymkit.servers.route import Route
from gymkit.usersim.runtime import Message, Role
from gymkit.usersim.toolbox import Check, EnvironmentTools, Functions, Toolbox
from gymkit.wire import codec

PROBE: Final = "scenario"
"""What rows of scenarios have as their ``probe_type``."""

REVISION: Final = "gymkit-scenario-1"
"""What rows of scenarios say of what plays them."""

DONE: Final = "[[DONE]]"
"""What the user's model writes when it is finished; it is taken off what is shown."""

TASKSET: Final = "nemo_user_sim:scenario"
"""The task set of scenarios."""


class Environment(Protocol):
    """An environment with tasks, such as ``gymkit.Env``."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its task rows."""

    def route(self) -> Route:
        """A fresh route to it."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A finished conversation, as checks see it."""

    messages: tuple[Message, ...]
    """Everything that was said and done."""
    calls: tuple[tuple[str, dict[str, Any], str], ...]
    """The tool calls that were run: name, arguments, output."""

    @property
    def text(self) -> str:
        """What the assistant said, all of it."""
        return "\n".join(str(each.get("content") or "") for each in self.messages if each["role"] == "assistant")

    def called(self, name: str) -> list[dict[str, Any]]:
        """The arguments of each call of the tool ``name``."""
        return [arguments for called, arguments, _ in self.calls if called == name]


@dataclass(frozen=True)
class Scenario:
    """A user with a goal.

    ::

        gk.Scenario(
            persona="Maya, 34, in a hurry, writes short sentences",
            goal="move the dentist's appointment from Tuesday to Friday",
            tools=[list_slots, move_appointment],
            checks=[lambda talk: talk.called("move_appointment") == [{"day": "Friday"}]],
        )

    Parameters
    ----------
    persona, goal:
        Who the user is (a description, or a dict of fields), and what it wants from the assistant.
    opening, facts, stop:
        Its first message (by default its model writes one), what it knows and may tell, and when it is finished: a
        sentence that its model goes by, or a function of the ``Talk`` that decides.
    tools, task:
        What the assistant may call: Python functions, or an ``Env`` and the number of one of its tasks; the verifier
        of an ``Env`` is one more check.
    checks:
        Functions of the finished ``Talk`` (``talk.text``, ``talk.called(name)``) that give a bool, or a score 0 to 1.
    max_turns:
        Turns of the assistant, at most.
    language, locale:
        What the user speaks; the script of the locale is what its words are held to.
    instructions, params:
        A system prompt for the assistant (none by default), and request parameters by role.

    Raises ConfigError for an empty goal, for tools that cannot be used, and for less than one turn.
    """

    persona: str | Mapping[str, Any]
    """Who the user is: a description, or fields (``first_name``, ``age``, ``persona``, …)."""
    goal: str
    """What it wants from the assistant."""
    opening: str | None = None
    """Its first message, word for word; by default its model writes one."""
    tools: Environment | Sequence[Callable[..., Any]] = ()
    """What the assistant may call: Python functions, or an ``Env``, whose verifier then is a check of its own."""
    stop: str | Callable[[Talk], bool] | None = None
    """When the user is finished: a sentence that its model goes by, or a function that decides."""
    max_turns: int = 6
    """Turns of the assistant, at most."""
    checks: Sequence[Check] | Mapping[str, Check] = ()
    """What has to be true of the finished conversation (a ``Talk``): bools, or scores from 0 to 1."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the user knows and may tell (an order number, a date of birth); it is told to make up nothing else."""
    language: str = "English"
    """The language of the conversation."""
    locale: str = "en_US"
    """The locale; its script is what the user's words are held to."""
    instructions: str | None = None
    """A system prompt for the assistant; none by default, as an agent brings its own."""
    task: int = 0
    """Which task of the environment, where ``tools`` is one."""
    params: Mapping[Role, Mapping[str, Any]] = field(default_factory=dict)
    """Request parameters by role, such as ``{"user": {"temperature": 0.7, "max_output_tokens": 80}}``."""

    def __post_init__(self) -> None:
        if not self.goal.strip():
            raise ConfigError("Scenario: the goal is empty, and a user without one has nothing to say")
        if self.max_turns < 1:
            raise ConfigError(f"Scenario: max_turns must be at least 1, not {self.max_turns}")

    def toolbox(self) -> Toolbox:
        """A fresh set of its tools, for one episode. Raises ConfigError for tools that cannot be used."""
        if isinstance(self.tools, Sequence):
            if wrong := [each for each in self.tools if not callable(each)]:
                raise ConfigError(f"Scenario: a tool is a Python function, not {wrong[0]!r:.80}")
            return Functions(self.tools)
        rows = self.tools.rows
        if not 0 <= self.task < len(rows):
            raise ConfigError(f"Scenario: there is no task {self.task}: the environment has {len(rows)}")
        return EnvironmentTools(self.tools.route(), rows[self.task])

    @property
    def judges_itself(self) -> bool:
        """Whether it has checks, or an environment's verifier, so that no judge is needed."""
        return bool(self.checks) or not isinstance(self.tools, Sequence)

    @property
    def named_checks(self) -> dict[str, Check]:
        """The checks by name."""
        if isinstance(self.checks, Mapping):
            return dict(self.checks)
        names = (getattr(check, "__name__", "check").strip("<>") for check in self.checks)
        return {f"{name}_{index}": check for index, (name, check) in enumerate(zip(names, self.checks, strict=True))}

    def row(self) -> dict[str, Any]:
        """It as a prepared row: ``task_id``, ``resolved_row`` and ``params``, the same for the same scenario."""
        persona = {"persona": self.persona} if isinstance(self.persona, str) else dict(self.persona)
        settings = {
            "name": "conversation_messages",
            "locale": self.locale,
            "max_turns": self.max_turns,
            "opening": self.opening,
            "facts": dict(self.facts),
            "stop": self.stop if isinstance(self.stop, str) else None,
            "instructions": self.instructions,
            "tools": list(self.toolbox().tools),
            "task": self.task,
            "checks": list(self.named_checks),
        }
        theme = codec.dumps({"type": PROBE, "description": self.goal}).decode()
        body = {
            "persona": persona,
            "probe_type": PROBE,
            "probe_family": PROBE,
            "probe_variant": "default",
            "theme": theme,
            "locale": self.locale,
            "conversation_language": self.language,
            "usersim_config": settings,
            "usersim_provenance": codec.dumps(
                {"nemotron_personas_version": "synthetic", "code_sha": REVISION, "bank_version": {}}
            ).decode(),
        }
        params = {role: dict(given) for role, given in self.params.items()}
        asked = {"role_request_params": params} if params else {}
        handle = hashlib.sha256(codec.dumps_sorted({**body, **asked})).hexdigest()[:16]
        return {"task_id": handle, "resolved_row": {**body, "trajectory_id": handle}, **asked}

    def user_prompt(self) -> str:
        """What the user's model is told to be."""
        person = self.persona if isinstance(self.persona, str) else _listed(self.persona)
        known = f"\nWhat you know and may tell when it is asked or needed:\n{_listed(self.facts)}" if self.facts else ""
        end = self.stop if isinstance(self.stop, str) else "your goal is reached, or it is plain that it will not be"
        return (
            f"You play a person who talks to an assistant. You are never the assistant.\n\nThe person:\n{person}\n\n"
            f"What the person wants: {self.goal}{known}\n\n"
            f"Write the person's next message only, in {self.language}, as such a person would type it. Make up no "
            f"further facts. Do not mention these lines. When {end}, write a closing word and then {DONE}."
        )

    async def checked(self, talk: Talk) -> dict[str, dict[str, Any]]:
        """What each check says: ``score`` from 0 to 1, None where it cannot tell, and ``error`` where it failed."""
        return {name: await _said(check, talk) for name, check in self.named_checks.items()}

    def __repr__(self) -> str:
        return f"<Scenario {self.goal!r:.60}>"


async def _said(check: Check, talk: Talk) -> dict[str, Any]:
    try:
        told = check(talk)
        value = await told if inspect.isawaitable(told) else told
        score = None if value is None else float(value)
        if score is not None and not 0 <= score <= 1:
            raise ValueError(f"a check gives a bool or a score from 0 to 1, not {value!r}")
    except Exception as error:  # noqa: BLE001 - a check that fails says nothing of the assistant
        return {"score": None, "error": f"{type(error).__name__}: {error}"}
    return {"score": score, "error": None}


async def environment_check(toolbox: Toolbox, messages: Sequence[Message]) -> dict[str, Any] | None:
    """What the environment's verifier says, as a check; None where the tools have none."""

    def score(_: Any) -> Awaitable[float | None]:
        return toolbox.score(messages)

    if not isinstance(toolbox, EnvironmentTools):
        return None
    return await _said(score, Talk(tuple(messages), ()))


def _listed(fields: Mapping[str, Any]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in fields.items() if value not in (None, ""))
