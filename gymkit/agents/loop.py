"""The loop of every agent of ours: ask, execute the tool calls that come back, ask again, until there is an answer.

Who answers (a service, a model server, a function) is a ``Conversation``; where tools run is a ``Tenancy``. The same
loop does whole rollouts (``/run``), single turns (``/v1/responses``) and the turns of agent sessions.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from gymkit.agents.observed import Invocation, bundle
from gymkit.agents.reach import Reach
from gymkit.agents.tenancy import Tenancy
from gymkit.agents.trace import Trace
from gymkit.errors import InvalidReply, WireError
from gymkit.servers.agent import Activation, AgentServer
from gymkit.servers.agent_session import RETRY_WINDOW
from gymkit.servers.http import Answer, Refused, json_answer
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.wire.agent_sessions import DirectHttp, SeedAgentSession, ToolAccess
from gymkit.wire.responses import check_request, check_response, unpaired_calls


class Conversation(Protocol):
    """Whoever answers, for the length of one rollout or one turn."""

    cookies: CookieJar
    """What the answering side set."""

    @property
    def models_asked(self) -> int:
        """Calls of models on the rollout's record that it made beside its replies."""

    async def ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """The next reply: a checked response. Raises ServerError."""

    async def aclose(self) -> None:
        """Nobody will ask again."""


@dataclass(slots=True)
class Visit:
    """An agent session."""

    tenancy: Tenancy | None
    """Where its tools run; None for a session without access to any."""
    invocations: list[Invocation] = field(default_factory=list)
    """Its activations so far."""


class LoopAgent(AgentServer[Visit]):
    """Base of the agents that own the loop. ``converse`` says who answers.

    ``max_steps`` bounds the replies of one rollout or turn; ``execute_tools`` False leaves calls to whoever seeded the
    session; ``tool_accesses`` are what every session may reach; ``neighbours`` are servers in this process that a
    session may be granted; ``observed`` says whether sessions report what they saw.
    """

    patient: ClassVar[bool] = False
    """Whether a reply with neither a message nor a call is asked to go on; otherwise it ends the rollout."""
    model_name: str | None = None
    """The model server's name, for those that record which model calls belong to whom."""
    training: bool = False
    """Whether the answering side is asked to have its token ids recorded, even where the caller does not ask for it."""

    def __init__(
        self,
        name: str,
        resources: Route | None,
        *,
        max_steps: int | None = None,
        execute_tools: bool = True,
        tool_accesses: Iterable[ToolAccess] = (),
        neighbours: Iterable[Route] = (),
        observed: bool = True,
        retry_window: float = RETRY_WINDOW,
    ) -> None:
        super().__init__(name, resources, retry_window=retry_window)
        self.max_steps = max_steps
        self.execute_tools = execute_tools
        self.observed = observed
        self.reach = Reach([*neighbours, *([resources] if resources else ())])
        self._accesses = {access.name: access for access in tool_accesses}

    @abstractmethod
    def converse(self, rollout: str | None, training: bool) -> Conversation:
        """Who answers; ``rollout`` and ``training`` are those of the activation."""

    def converse_about(self, row: Mapping[str, Any], rollout: str | None, training: bool) -> Conversation:
        """Who answers in a whole rollout of the task ``row``, for agents that take more of it than its request."""
        return self.converse(rollout, training)

    async def play(self, row: Mapping[str, Any], trace: Trace, rollout: str | None, training: bool) -> dict[str, Any]:
        """Seed, loop, verify: the verifier's reply for the task ``row``. Raises WireError, ServerError, RolloutFailed.

        ``trace`` has what was done so far whenever this ends.
        """
        params = as_items(row.get("responses_create_params"))
        tenancy = self._tenancy({})
        await tenancy.seed(row)
        await self._converse(params, tenancy, trace, self.converse_about(row, rollout, training))
        return await self.verdict({**row, "response": trace.response()}, tenancy)

    async def verdict(self, body: dict[str, Any], tenancy: Tenancy) -> dict[str, Any]:
        """What becomes of a finished rollout."""
        return await tenancy.verify(body)

    async def respond(self, activation: Activation[Visit]) -> Answer:
        """One turn: everything that is done until the loop ends, as one response."""
        visit = activation.session
        if visit is None and not self.execute_tools:
            raise Refused(
                500, f"{self.name} executes no tools, so it takes part in sessions only", kind="needs_session"
            )
        tenancy = visit.tenancy if visit else self._tenancy(activation.cookies) if self.resources else None
        params, trace, began = as_items(activation.params), Trace(), time.perf_counter()
        error: str | None = None
        try:
            training = activation.training or self.training
            cookies = await self._converse(params, tenancy, trace, self.converse(activation.rollout, training))
        except BaseException as raised:
            trace.termination_reason, error = "error", type(raised).__name__
            raise
        finally:
            if visit and self.observed:
                visit.invocations.append(Invocation(params["input"], trace, time.perf_counter() - began, error))
        if visit is None and tenancy is not None:
            cookies = CookieJar({**tenancy.jar, **cookies})
        answer = json_answer(trace.response())
        answer.headers += [
            (b"set-cookie", f"{key}={value}; path=/".encode("latin-1")) for key, value in cookies.items()
        ]
        return answer

    async def open_session(self, seed: SeedAgentSession) -> Visit:
        """Find the one place where this session's tools are. Raises Refused for what a loop cannot use."""
        if seed.sandbox_access is not None:
            raise Refused(422, f"{self.name} cannot work in a sandbox", kind="unsupported_access")
        granted = self._accesses | {access.name: access for access in seed.tool_accesses}
        direct = [access for access in granted.values() if isinstance(access, DirectHttp)]
        if mcp := [access.name for access in granted.values() if access.kind == "mcp" and access.required]:
            raise Refused(422, f"{self.name} cannot use MCP tools: {', '.join(mcp)}", kind="unsupported_access")
        if len(direct) > 1:
            names = ", ".join(access.name for access in direct)
            raise Refused(422, f"{self.name} can use one direct_http access, not {names}", kind="unsupported_access")
        return Visit(self._granted(direct[0]) if direct else None)

    async def close_session(self, state: Visit) -> dict[str, Any]:
        """What was seen, and the environment's cookies as they are now."""
        told: dict[str, Any] = {}
        if state.invocations:
            told["agent_observations"] = bundle(self.implementation, self.model_name, state.invocations)
        if state.tenancy is not None:
            told["resources_cookies"] = dict(state.tenancy.jar)
            await self.reach.give_back(state.tenancy.route)
        return told

    def _granted(self, access: DirectHttp) -> Tenancy:
        return Tenancy(self.reach.take(access.base_url), access.cookies, access.headers)

    def _tenancy(self, cookies: Mapping[str, str]) -> Tenancy:
        if self.resources is None:
            raise Refused(500, f"{self.name} has no resources server, so it takes part in sessions only", kind="seed")
        return Tenancy(self.resources, cookies)

    async def _converse(
        self, params: dict[str, Any], tenancy: Tenancy | None, trace: Trace, conversation: Conversation
    ) -> CookieJar:
        began = time.perf_counter()
        try:
            await self._loop(params, conversation, tenancy, trace)
        finally:
            trace.seconds, trace.models_asked = time.perf_counter() - began, conversation.models_asked
            await conversation.aclose()
        return conversation.cookies

    async def _loop(
        self, params: dict[str, Any], conversation: Conversation, tenancy: Tenancy | None, trace: Trace
    ) -> None:
        declared = {tool.get("name") for tool in params.get("tools") or () if isinstance(tool, dict)}
        task_input = params["input"]
        while not trace.termination_reason:
            reply = await conversation.ask({**params, "input": [*task_input, *trace.output]})
            calls = unpaired_calls(reply["output"])
            trace.step(reply, bool(calls))
            if trace.termination_reason:
                return
            if calls and not self.execute_tools:
                trace.termination_reason = "calls"
                return
            if not calls and not self.patient:
                trace.fall_silent()
                return
            for call in calls:
                await self._required(tenancy, call).execute(call, declared, trace)
            if trace.steps == self.max_steps:
                trace.termination_reason = "max_steps"

    def _required(self, tenancy: Tenancy | None, call: Mapping[str, Any]) -> Tenancy:
        if tenancy is None:
            message = (
                f"{self.name} was asked to run the tool {call['name']!r}, but it was granted no direct_http access"
            )
            raise Refused(500, message, kind="no_tool_access")
        return tenancy


def as_items(params: Any) -> dict[str, Any]:
    """The request with its input as a list of items. Raises WireError for what is no request."""
    check_request(params)
    if isinstance(params["input"], str):
        return {**params, "input": [{"role": "user", "content": params["input"], "type": "message"}]}
    return params  # type: ignore[no-any-return]


def checked_reply(reply: Reply) -> dict[str, Any]:
    """The response in ``reply``. Raises Redirected, BadStatus, NotJson or InvalidReply."""
    response = reply.expect_ok().json()
    try:
        check_response(response)
    except WireError as error:
        message = f"{reply.url} answered with an object that is no Responses API response: {'; '.join(error.problems)}"
        raise InvalidReply(message, server=reply.server, url=reply.url) from error
    return response  # type: ignore[no-any-return]
