"""An agent server: it takes one task row on ``/run`` and answers with the verified rollout.

An agent that implements sessions can also be driven from outside, by an environment server that seeds, activates and
closes it and keeps the verdict to itself: override ``open_session``, ``respond`` and ``close_session``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from gymkit.servers.agent_session import RETRY_WINDOW, AgentSessions
from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.http import Answer, Refused, Request, json_answer
from gymkit.servers.route import Route
from gymkit.wire.agent_sessions import CloseAgentSession, SeedAgentSession
from gymkit.wire.responses import check_request

AGGREGATE_TIMEOUT = 600.0
"""Seconds that the resources server may take to aggregate a run."""

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Activation(Generic[State]):
    """One call of ``/v1/responses``."""

    params: dict[str, Any]
    """The request, checked."""
    rollout: str | None = None
    """The rollout that it belongs to, from the path's prefix."""
    training: bool = False
    """Whether the tokens are wanted for training."""
    cookies: Mapping[str, str] = field(default_factory=dict)
    """The caller's cookies, other than this server's own."""
    session: State | None = None
    """What ``open_session`` made; None for a call without a session."""


class AgentServer(ServerApp, Generic[State]):
    """Base of every agent server. ``resources`` is the environment that seeds, serves tools and verifies.

    ``State`` is what the agent keeps of a session.
    """

    server_type = "responses_api_agents"
    cut_short = frozenset({"POST /run", "POST /v1/responses"})
    reads_skills: ClassVar[bool] = False
    """Whether it hands the run's skills (``servers.skills``) to its agent, which takes a place for files."""
    opaque: ClassVar[bool] = False
    """Whether its responses may leave out what its model said, so that they are rebuilt from recorded calls."""

    def __init__(self, name: str, resources: Route | None, *, retry_window: float = RETRY_WINDOW) -> None:
        super().__init__(name)
        self.resources = resources
        self.sessions: AgentSessions[State] = AgentSessions(
            f"{type(self).__name__}___{name}", self.open_session, self.close_session, window=retry_window
        )

    @abstractmethod
    async def run(self, row: dict[str, Any]) -> dict[str, Any]:
        """Do one rollout of the task ``row``: the verify reply, or a failure row (``_ng_failure_class``)."""

    async def respond(self, activation: Activation[State]) -> Answer:
        """Answer one ``/v1/responses``: everything that the agent does this turn, as one response."""
        raise Refused(404, f"{self.name} has no POST /v1/responses", kind="unknown_route")

    async def open_session(self, seed: SeedAgentSession) -> State:
        """The state of a new session. Raise AgentSessionSetupError for a failure that leaves something behind."""
        raise Refused(500, f"{self.name} implements no agent sessions", kind="not_implemented")

    async def close_session(self, state: State) -> Mapping[str, Any]:
        """Let go of a session: ``agent_observations`` and ``resources_cookies``, where there are any."""
        raise Refused(500, f"{self.name} implements no agent sessions", kind="not_implemented")

    def handlers(self) -> Mapping[str, Handler]:
        """One rollout, one turn, a session, and the run's metrics, which the resources server computes."""
        return {
            "POST /run": self._run,
            "POST /v1/responses": self._responses,
            "POST /v1/agent_sessions": self._seed,
            "POST /v1/agent_sessions/close": self._close,
            "POST /aggregate_metrics": self._aggregate_metrics,
        }

    async def _run(self, request: Request) -> dict[str, Any]:
        return await self.run(request.json_object())

    async def _responses(self, request: Request) -> Answer:
        params = request.json_object()
        check_request(params)
        cookies = request.cookies()
        own = cookies.pop(self.sessions.name, None)
        if own is None:
            return await self.respond(Activation(params, request.rollout, request.training, cookies))

        handle = self.sessions.handle_of(own)

        async def work(state: State) -> Answer:
            return await self.respond(Activation(params, request.rollout, request.training, cookies, state))

        answer = await self.sessions.use(handle, work)
        answer.headers.append((b"set-cookie", self.sessions.set_cookie(handle)))
        return answer

    async def _seed(self, request: Request) -> Answer:
        seed = request.checked(SeedAgentSession)
        await self.sessions.seed(seed, request.cookie(self.sessions.name))
        return self._bound(seed.agent_session_id, {"agent_session_id": seed.agent_session_id})

    async def _close(self, request: Request) -> Answer:
        if type(self).close_session is AgentServer.close_session:
            raise Refused(500, f"{self.name} implements no agent sessions", kind="not_implemented")
        close = request.checked(CloseAgentSession)
        receipt = await self.sessions.close(close, request.cookie(self.sessions.name))
        return self._bound(close.agent_session_id, receipt)

    def _bound(self, handle: str, content: Mapping[str, Any]) -> Answer:
        return json_answer(content, headers={b"set-cookie": self.sessions.set_cookie(handle)})

    async def _aggregate_metrics(self, request: Request) -> Any:
        body = request.json()
        if self.resources is None:
            raise Refused(500, f"{self.name} has no resources server, which would aggregate", kind="no_environment")
        reply = await self.resources.post("/aggregate_metrics", body, timeout=AGGREGATE_TIMEOUT)
        return reply.expect_ok().json()

    async def aclose(self) -> None:
        """Close the sessions that are left, and let go of the connections to the resources server."""
        await self.sessions.aclose()
        if self.resources is not None:
            await self.resources.aclose()
