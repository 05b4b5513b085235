"""The cast of an episode: who plays each role, what they are asked, and what is made of it when they cannot answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gymkit.errors import BadStatus, CallTimeout, InvalidReply, NotJson, ServerError, Unreachable, WireError
from gymkit.servers.episode import EpisodeFailed, is_retryable
from gymkit.servers.participant import Player
from gymkit.servers.route import Route
from gymkit.usersim.chat import items_of, message_of, params_of, request_of, usage_of
from gymkit.usersim.invocation import Invocation, Listener, spoken_by_participants
from gymkit.usersim.runtime import (
    PARTICIPANTS,
    Activation,
    EpisodeRuntime,
    Failure,
    Message,
    Role,
    RoleUnavailable,
    Spoken,
)
from gymkit.wire.responses import check_response

SESSION_STATUSES = frozenset({404, 409})
"""Statuses of a participant's session: another attempt opens another one."""

ATTEMPTS = 3
"""How often a connection to a model server is tried."""

_THEIR_NAMES: Mapping[Role, str] = {
    "user": "the simulated user",
    "assistant": "the assistant",
    "judge": "the judge model",
    "summary": "the summary model",
    "tool_simulation": "the model that plays the tools",
}


class Mistake(Exception):
    """The assistant's own doing: the episode is measured as a failure of the assistant."""


@dataclass(slots=True)
class Cast:
    """Who plays. Participants are sessions of agents; the others are model servers."""

    players: Mapping[Role, Player]
    """The user and the assistant."""
    models: Mapping[Role, Route]
    """Judge, summary and tool simulation."""
    base: Mapping[Role, Mapping[str, Any]]
    """Request parameters by role, underneath."""
    timeout: float
    """Seconds that one call may take."""
    path: str = "/v1/responses"
    """Where the model servers are asked; under the rollout's name, so that they record what they are asked."""
    listener: Listener | None = None
    """Told of each invocation."""
    training: bool = False
    """Whether the assistant's token ids are to be recorded; nobody else's ever are."""
    asked: int = 0
    """How often the assistant was asked; more often than it has invocations where a reply was lost."""
    invocations: list[Invocation] = field(default_factory=list)
    """What was said, in order."""

    async def play(self, runtime: EpisodeRuntime) -> str | None:
        """Play ``runtime`` to its end: None, or why it ended early through the assistant's own doing.

        Raises EpisodeFailed when somebody else could not answer.
        """
        spoken: Spoken | None = None
        try:
            while (activation := await self._advance(runtime, spoken)) is not None:
                spoken = await self._speak(activation)
        except Mistake as mistake:
            reason = "assistant_model_activation_failed"
            failure = Failure("assistant_activation_error", "assistant_model", str(mistake), reason)
            await runtime.fail(failure, spoken_by_participants(self.invocations))
            return reason
        return None

    async def simulate(self, messages: list[Message], parameters: Mapping[str, Any]) -> Spoken:
        """Ask the model that plays the tools. Raises ServerError."""
        request = {**self.base.get("tool_simulation", {}), **params_of(parameters), "input": items_of(messages)}
        response = await self._ask_model("tool_simulation", request)
        return Spoken("", message_of(response), usage_of(response))

    async def _advance(self, runtime: EpisodeRuntime, spoken: Spoken | None) -> Activation | None:
        try:
            return await runtime.advance(spoken)
        except RoleUnavailable as error:
            raise _failed(error.role, error.error, retryable=is_retryable(error.error)) from error
        except EpisodeFailed:
            raise
        except Exception as error:
            found = _cause(error, RoleUnavailable)
            if found is not None:
                raise _failed(found.role, found.error, retryable=is_retryable(found.error)) from error
            reason = f"the episode broke: {type(error).__name__}: {error}"
            raise EpisodeFailed(reason, terminal=True, kind="usersim:runtime_error", stage="agent") from error

    async def _speak(self, activation: Activation) -> Spoken:
        role = activation.role
        messages = list(activation.messages)
        if role not in PARTICIPANTS:
            try:
                response = await self._ask_model(role, request_of(activation, messages, self.base.get(role, {})))
            except Exception as error:
                raise _failed(role, error, retryable=is_retryable(error)) from error
        else:
            try:
                request = request_of(activation, messages, self.base.get(role, {}))
                training = self.training and role == "assistant"
                self.asked += role == "assistant"
                response = await self._timed(
                    role, request, lambda: self.players[role].respond(request, training=training)
                )
                message = message_of(response)
                check_calls(activation, message)
            except Exception as error:
                raise _of_participant(role, error) from error
        return Spoken(activation.id, message_of(response), usage_of(response))

    async def _ask_model(self, role: Role, request: dict[str, Any]) -> dict[str, Any]:
        async def post() -> dict[str, Any]:
            route = self.models[role]
            reply = await route.post(self.path, request, attempts=ATTEMPTS)
            response = reply.expect_ok().json()
            try:
                check_response(response)
            except WireError as error:
                message = f"{reply.url} answered with no Responses API response: {'; '.join(error.problems)}"
                raise InvalidReply(message, server=reply.server, url=reply.url) from error
            return response  # type: ignore[no-any-return]

        return await self._timed(role, request, post)

    async def _timed(
        self, role: Role, request: dict[str, Any], ask: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        began = time.perf_counter()
        bound = asyncio.timeout(self.timeout)
        try:
            async with bound:
                response = await ask()
        except TimeoutError as error:
            if not bound.expired():
                raise
            route = self.players[role].route if role in self.players else self.models[role]
            message = f"{route.name} did not answer within actor_call_timeout_seconds={self.timeout:g} s"
            raise CallTimeout(message, server=route.name, url=route.url) from error
        seconds = time.perf_counter() - began
        invocation = Invocation(len(self.invocations), role, request, response, round(seconds, 6))
        self.invocations.append(invocation)
        if self.listener is not None:
            self.listener(invocation)
        return response


def check_calls(activation: Activation, message: Message) -> None:
    """Check the tool calls of a participant. Raises ValueError for one that cannot be recorded."""
    calls = message.get("tool_calls") or []
    if calls and not activation.tools:
        raise ValueError(f"it called {calls[0]['function']['name']!r} where no tools are offered")
    names, seen = activation.tool_names(), set()
    for call in calls:
        handle, name = call.get("id"), call["function"]["name"]
        if not isinstance(handle, str) or not handle.strip():
            raise ValueError(f"its call of {name!r} has no call_id")
        if handle in seen:
            raise ValueError(f"two of its calls have the call_id {handle!r}")
        if name not in names:
            raise ValueError(f"it called {name!r}, which is not offered ({', '.join(sorted(names))})")
        seen.add(handle)


def _of_participant(role: Role, error: Exception) -> Exception:
    """What becomes of a participant that did not answer as it should."""
    if role == "assistant" and _is_mistake(error):
        return Mistake(str(error) or type(error).__name__)
    return _failed(role, error, retryable=is_participant_retryable(error))


def is_participant_retryable(error: Exception) -> bool:
    """Whether another attempt may go better: no answer, one that says so, or a session that is gone."""
    return is_retryable(error) or (isinstance(error, BadStatus) and error.status in SESSION_STATUSES)


def _is_mistake(error: Exception) -> bool:
    if isinstance(error, BadStatus):
        return 400 <= error.status < 500 and not is_participant_retryable(error)
    return isinstance(error, InvalidReply | NotJson | ValueError | TypeError | AttributeError)


def _failed(role: Role, error: Exception, *, retryable: bool) -> EpisodeFailed:
    """The failure of an episode in which ``role`` could not answer; its name is in the sentence and in the kind."""
    said = str(error) or type(error).__name__
    reason = f"{_THEIR_NAMES[role]} failed: {said}"
    return EpisodeFailed(reason, terminal=not retryable, kind=f"usersim:{role}_{_kind(error)}", stage="agent")


def participant_failed(role: Role, error: Exception) -> EpisodeFailed:
    """The failure of an episode whose participant ``role`` cannot be seated."""
    return _failed(role, error, retryable=is_participant_retryable(error))


def _kind(error: Exception) -> str:
    if isinstance(error, Unreachable | CallTimeout | BadStatus):
        return error.kind
    return error.kind if isinstance(error, ServerError) else "error"


def _cause(error: BaseException | None, kind: type[RoleUnavailable]) -> RoleUnavailable | None:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
