"""The model that judges, as an evaluator calls it, and a note of every purpose for which it failed.

The package's scorers take a judge that failed, or that answered with nonsense, for one that found nothing to blame.
So what a judge really did is noted here, and the verdict goes by that.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

from gymkit.errors import GymkitError, InvalidReply, ServerError, WireError
from gymkit.servers.episode import is_retryable
from gymkit.servers.route import Route
from gymkit.usersim import schema
from gymkit.usersim.chat import items_of, message_of, params_of, usage_of
from gymkit.usersim.package import completion, plain
from gymkit.usersim.runtime import Message, Spoken
from gymkit.wire import codec
from gymkit.wire.responses import check_response

EVALUATION: Final = "evaluation"
"""The purpose of the call that gives the axes of quality."""

ATTEMPTS: Final = 3
"""How often a connection is tried."""

_TAKEN: Final = frozenset({"max_tokens", "max_completion_tokens", "reasoning_effort", "response_format", "temperature"})


class JudgeRefused(GymkitError, TypeError):
    """The judge's server refuses the call; a TypeError as well, for which the package does not ask again."""


class Judge:
    """One evaluation's judge. ``faults`` has, by purpose, how its last call went wrong.

    ``rollout`` is the capture key under which its server records what it is asked; None where there is none.
    """

    def __init__(self, route: Route, model_name: str, timeout: float, rollout: str | None = None) -> None:
        self.model_name = model_name
        self.faults: dict[str, str] = {}
        self.calls: list[str] = []
        """The purposes that it was asked for, in order."""
        self._route = route
        self._timeout = timeout
        self._path = f"/ng-rollout/{rollout}/v1/responses" if rollout else "/v1/responses"

    async def acompletion(self, messages: list[Any], **parameters: Any) -> SimpleNamespace:
        """One call, as the package makes it. Raises ServerError, or JudgeRefused where asking again cannot help."""
        return completion(await self.ask([_chat(message) for message in messages], parameters))

    async def ask(self, messages: list[Message], parameters: Mapping[str, Any]) -> Spoken:
        """One call. Raises as ``acompletion`` does; a reply that breaks its schema is noted and returned."""
        if unknown := parameters.keys() - _TAKEN:
            raise TypeError(f"a judge takes no {', '.join(sorted(unknown))}")
        purpose, expected = _asked_for(parameters)
        self.calls.append(purpose)
        try:
            spoken = await self._post(messages, parameters)
        except (ServerError, WireError) as error:
            self.faults[purpose] = str(error)
            if is_retryable(error):
                raise
            raise JudgeRefused(str(error)) from error
        self._note(purpose, expected, spoken.message["content"])
        return spoken

    async def _post(self, messages: list[Message], parameters: Mapping[str, Any]) -> Spoken:
        body = {**params_of(parameters), "input": items_of(messages)}
        reply = await self._route.post(
            self._path, body, timeout=self._timeout, knob="model_call_timeout_seconds", attempts=ATTEMPTS
        )
        response = reply.expect_ok().json()
        try:
            check_response(response)
        except WireError as error:
            message = f"{reply.url} answered with no Responses API response: {'; '.join(error.problems)}"
            raise InvalidReply(message, server=reply.server, url=reply.url) from error
        return Spoken("", message_of(response), usage_of(response))

    def _note(self, purpose: str, expected: Mapping[str, Any] | None, text: str) -> None:
        self.faults.pop(purpose, None)
        if expected is None:
            return
        try:
            value = codec.loads(text.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            self.faults[purpose] = f"the judge's reply is not JSON: {error}"
            return
        # The evaluator does with some of its axes; a scorer without one of its scores takes it for a pass.
        if found := schema.problems(expected, value, absent_ok=purpose == EVALUATION):
            self.faults[purpose] = f"the judge's reply is not of its schema: {'; '.join(found[:3])}"


def _asked_for(parameters: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    wanted = parameters.get("response_format")
    if not isinstance(wanted, Mapping):
        return "text", None
    described = wanted["json_schema"]
    return str(described["name"]), described["schema"]


def _chat(message: Any) -> Message:
    return message if isinstance(message, dict) else plain(message)
