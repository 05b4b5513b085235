"""One call of the service as it went: the request, the answer, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from gymkit.errors import InvalidReply, ServerError, WireError
from gymkit.servers.route import Reply
from gymkit.wire import codec
from gymkit.wire.responses import check_response, unpaired_calls

LADDER: Final = ("reachable", "in time", "no redirect", "status", "valid object")
"""What an answer has to get past, in this order; each is the name of a rule."""

_RUNGS: Final = {
    "unreachable": 0,
    "timeout": 1,
    "redirect": 2,
    "http_status": 3,
    "not_json": 4,
    "invalid_response": 4,
}

Ask = tuple[str, str]
"""A tool call as it is compared: the name, and the arguments in one spelling."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what became of it."""

    params: dict[str, Any]
    """The request's body."""
    cookies: Mapping[str, str]
    """The service's own cookies that were sent along."""
    seconds: float
    """From the request to the whole answer, or to giving up."""
    reply: Reply | None = None
    """The answer; None when there was none."""
    error: ServerError | None = None
    """Why the answer is of no use; None for a valid one."""
    response: dict[str, Any] | None = None
    """The valid Responses API object, without ``usage`` where only that was wrong."""
    usage_problem: str | None = None
    """What is wrong with the ``usage``, None when it is whole or absent."""

    @classmethod
    def answered(cls, params: dict[str, Any], cookies: Mapping[str, str], seconds: float, reply: Reply) -> Self:
        """An exchange whose answer is in; it is checked here, as the remote agent checks it."""
        try:
            body = reply.expect_ok().json()
            problem = _usage_problem(body, reply)
        except ServerError as error:
            return cls(params, cookies, seconds, reply, error)
        if problem:
            body = {key: value for key, value in body.items() if key != "usage"}
        return cls(params, cookies, seconds, reply, None, body, problem)

    @property
    def rung(self) -> int:
        """How many steps of the ladder the answer got past."""
        return len(LADDER) if self.error is None else _RUNGS[type(self.error).kind]

    @property
    def output(self) -> list[dict[str, Any]]:
        """The items of the answer; none for an answer of no use."""
        return self.response["output"] if self.response is not None else []

    @property
    def asks(self) -> list[Ask]:
        """The tool calls that the answer asks for."""
        return [(call["name"], _one_spelling(call["arguments"])) for call in unpaired_calls(self.output)]


def arguments_of(call: Mapping[str, Any]) -> Any:
    """The arguments of a call as a value; the ValueError itself where they are not JSON."""
    try:
        return codec.loads(call["arguments"].encode("utf-8", "surrogatepass"))
    except ValueError as error:
        return error


def _one_spelling(arguments: str) -> str:
    value = arguments_of({"arguments": arguments})
    if not isinstance(value, dict):
        return arguments
    return ", ".join(f"{name}={codec.dumps(value[name]).decode()}" for name in sorted(value))


def _usage_problem(body: Any, reply: Reply) -> str | None:
    """None for a valid response; what is wrong with its usage where nothing else is. Raises InvalidReply."""
    try:
        check_response(body)
        return None
    except WireError as error:
        problems = error.problems
    try:
        check_response(
            {key: value for key, value in body.items() if key != "usage"} if isinstance(body, dict) else body
        )
    except WireError:
        message = f"the body is no Responses API object: {'; '.join(problems)}"
        raise InvalidReply(message, server=reply.server, url=reply.url) from None
    return "; ".join(problems)
