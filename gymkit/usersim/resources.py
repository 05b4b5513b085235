"""``nemo_user_sim``, the resources server: it checks a resolved row, remembers it, and judges what became of it.

It has no tools and runs no conversation: those are the environment server's. A session is bound to its row by the
row's digest, so a verdict is given on what was seeded or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.http import Answer, Refused, Request, json_answer
from gymkit.servers.route import Route
from gymkit.servers.session import Session, Sessions, SessionsFull
from gymkit.usersim import audit
from gymkit.usersim.digest import digest_of
from gymkit.usersim.evaluation import Evaluation, Evaluator
from gymkit.usersim.judge import Judge
from gymkit.usersim.package import revision
from gymkit.usersim.runtime import PROTOCOL
from gymkit.usersim.task import row_problems
from gymkit.usersim.verdict import assistants_fault, judged, lost
from gymkit.wire.tasks import EpisodeId, TaskId

log = logging.getLogger("gymkit")

_TOMBSTONES = 100_000


class NemoUserSimResourcesConfig(BaseModel):
    """Settings, by NeMo Gym's names; the last three are ours."""

    model_config = ConfigDict(extra="forbid")

    usersim_revision: str | None = None
    """The revision of User Sim whose rows are taken, 40 hex digits; None for that of the installed package."""
    nemotron_personas_version: str = "0.0.2"
    """The version of Nemotron-Personas whose rows are taken, beside synthetic ones."""
    judge_max_output_tokens: int = Field(16_384, gt=0)
    """Tokens that the judge may write."""
    judge_max_output_tokens_non_ascii: int = Field(32_768, gt=0)
    """The same for scripts that take more tokens."""
    model_call_timeout_seconds: float = Field(300.0, gt=0, allow_inf_nan=False)
    """Seconds that one call of the judge may take."""
    evaluation_timeout_seconds: float = Field(1200.0, gt=0, allow_inf_nan=False)
    """Seconds that a verdict may take, all calls together."""
    session_ttl_seconds: float = Field(1980.0, gt=0, allow_inf_nan=False)
    """Seconds that a session is kept: an episode's time and its cleanup's."""
    user_audit: Literal["off", "rules", "judge"] = "rules"
    """Who checks the simulated user: nobody, rules, or rules and the judge."""
    mask_user_faults: bool = True
    """Whether an episode that its user spoiled is masked; the faults are told in any case."""
    user_fault_checks: tuple[audit.Check, ...] = audit.SPOILING
    """Which faults spoil an episode."""


class _Seed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    resources_session_id: str = Field(min_length=1)
    episode_id: EpisodeId
    task_id: TaskId
    task_data: dict[str, Any]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")

    resolved_row: dict[str, Any]
    usersim_result: dict[str, Any]
    invocations: list[dict[str, Any]] = []
    episode_interaction_protocol: Literal["usersim.ConversationLoop"] = PROTOCOL  # type: ignore[assignment]


class _Verify(BaseModel):
    model_config = ConfigDict(extra="forbid")

    episode_id: EpisodeId
    task_id: TaskId
    verification_input: _Input


class _Close(BaseModel):
    model_config = ConfigDict(extra="forbid")

    resources_session_id: str = Field(min_length=1)
    episode_id: EpisodeId


@dataclass(slots=True)
class _Seeded:
    """What a session is bound to."""

    seed: _Seed
    digest: str
    expires: float
    """Monotonic time after which it is gone, used or not."""
    verdict: asyncio.Task[dict[str, Any]] | None = None
    """What was said of it, for a request that is repeated because its answer got lost."""


class NemoUserSimResources(ServerApp):
    """The server. ``judge`` is the model that judges; None for an evaluator that needs none."""

    server_type = "resources_servers"
    implementation = "nemo_user_sim"

    def __init__(
        self,
        name: str,
        config: NemoUserSimResourcesConfig,
        *,
        evaluator: Evaluator,
        judge: Route | None,
        judge_name: str = "judge_model",
    ) -> None:
        super().__init__(name)
        self.config = config
        self.evaluator = evaluator
        self.judge = judge
        self.judge_name = judge_name
        self.sessions: Sessions[_Seeded] = Sessions(f"{type(self).__name__}___{name}", ttl=config.session_ttl_seconds)
        self._by_handle: dict[str, Session[_Seeded]] = {}
        self._closed: OrderedDict[str, float] = OrderedDict()

    def handlers(self) -> Mapping[str, Handler]:
        """Seed, verify, close and metrics."""
        return {
            "POST /seed_session": self._seed_session,
            "POST /verify": self._verify,
            "POST /close_session": self._close_session,
            "POST /aggregate_metrics": self.aggregated,
            "GET /reverify_mode": self._reverify_mode,
        }

    async def _reverify_mode(self, _: Request) -> str:
        return "unsupported"

    async def _seed_session(self, request: Request) -> Answer:
        seed = request.checked(_Seed)
        row = seed.task_data.get("resolved_row")
        if not isinstance(row, dict):
            raise Refused(422, ["task_data.resolved_row: must be an object"], kind="invalid_task")
        wanted = self.config.usersim_revision
        if wanted is None:
            wanted = await asyncio.to_thread(revision)
        if found := row_problems(row, wanted, self.config.nemotron_personas_version):
            raise Refused(422, [f"task_data.resolved_row.{problem}" for problem in found], kind="invalid_task")
        session = self._session(seed, digest_of(row), request.cookie(self.sessions.name))
        return self._reply(session, {"resources_session_id": seed.resources_session_id})

    def _session(self, seed: _Seed, digest: str, cookie: str | None) -> Session[_Seeded]:
        handle = seed.resources_session_id
        self._sweep()
        if handle in self._closed:
            raise Refused(409, f"session {handle!r} was closed; seed a new one", kind="session_closed")
        known = self._by_handle.get(handle)
        for session in (known, self.sessions.find(cookie)):
            if session is not None and session.state is not None:
                bound = session.state
                same = (bound.seed.resources_session_id, bound.seed.episode_id, bound.seed.task_id, bound.digest)
                if same != (handle, seed.episode_id, seed.task_id, digest):
                    raise Refused(409, "the session is bound to another task, episode or row", kind="session_conflict")
        if known is not None and self.sessions.find(known.cookie) is not None:
            return known
        try:
            session = self.sessions.open()
        except SessionsFull as error:
            raise Refused(503, f"{self.name}: {error}", kind="sessions_full") from error
        expires = time.monotonic() + self.config.session_ttl_seconds
        session.handle, session.seeded, session.state = handle, True, _Seeded(seed, digest, expires)
        self._by_handle[handle] = session
        return session

    def _sweep(self) -> None:
        """Drop sessions past their time; the oldest come first, since all are kept for as long."""
        now = time.monotonic()
        for handle, session in list(self._by_handle.items()):
            if session.state is not None and session.state.expires > now:
                return
            del self._by_handle[handle]
            self.sessions.drop(session)

    async def _verify(self, request: Request) -> Answer:
        body = request.checked(_Verify)
        cookie = request.cookie(self.sessions.name)
        self._sweep()
        session = self.sessions.find(cookie)
        if session is None or session.state is None:
            return json_answer(self._without_session(cookie))
        seeded = session.state
        self._same(seeded, body)
        if seeded.verdict is None:
            seeded.verdict = asyncio.create_task(self._verdict(seeded, body.verification_input))
        reply = await asyncio.shield(seeded.verdict)
        return self._reply(session, reply)

    def _without_session(self, cookie: str | None) -> dict[str, Any]:
        """A session that is gone is nobody's measurement."""
        if cookie is not None and cookie in self._closed:
            return lost("session_lost", "the session was closed before the episode was verified")
        if cookie is not None and self.sessions.was_ours(cookie):
            reason = f"the session is older than session_ttl_seconds={self.config.session_ttl_seconds:g} s"
            return lost("session_expired", reason)
        return lost("session_lost", "the session is not known here: the server was restarted, or the cookie got lost")

    def _same(self, seeded: _Seeded, body: _Verify) -> None:
        row, result = body.verification_input.resolved_row, body.verification_input.usersim_result
        told = result.get("trajectory_id")
        differing = {
            "episode_id": body.episode_id != seeded.seed.episode_id,
            "task_id": body.task_id != seeded.seed.task_id,
            "resolved_row": digest_of(row) != seeded.digest,
            "trajectory_id": told is not None and told != row.get("trajectory_id"),
        }
        if wrong := [name for name, differs in differing.items() if differs]:
            raise Refused(409, f"{', '.join(wrong)}: not what the session was seeded with", kind="session_conflict")

    async def _verdict(self, seeded: _Seeded, given: _Input) -> dict[str, Any]:
        row, result = given.resolved_row, given.usersim_result
        if result["simulation_outcome"].get("failure_attribution") == "assistant_model":
            return assistants_fault(row, result, seeded.digest)
        judge = None
        if self.judge is not None:
            rollout = seeded.seed.episode_id.capture_key
            judge = Judge(self.judge, self.judge_name, self.config.model_call_timeout_seconds, rollout)
        evaluation, error, report = Evaluation({"axes": {}, "scorers": {}}), None, None
        bound = asyncio.timeout(self.config.evaluation_timeout_seconds)
        try:
            async with bound:
                report = await self._audit(row, given, judge)
                evaluation = await self.evaluator.evaluate(row, result, judge)
        except Exception as failure:  # noqa: BLE001 - whatever the evaluator did, the assistant is not to blame
            error = f"{type(failure).__name__}: {failure}"
            if bound.expired():
                seconds = self.config.evaluation_timeout_seconds
                error = f"the evaluation took longer than evaluation_timeout_seconds={seconds:g} s"
            evaluation = Evaluation({"axes": {}, "scorers": {}, "error": error})
            log.warning("%s: episode %s could not be judged: %s", self.name, seeded.seed.episode_id.capture_key, error)
        return judged(row, result, seeded.digest, evaluation, error, report)

    async def _audit(self, row: Mapping[str, Any], given: _Input, judge: Judge | None) -> audit.Report | None:
        if self.config.user_audit == "off":
            return None
        messages = given.usersim_result["conversation_messages"]
        written = audit.Written.of(messages, given.invocations)
        faults, problem = audit.by_rules(row, written), None
        looked = self.config.user_audit == "judge" and judge is not None
        if looked and judge is not None:
            try:
                faults += await audit.by_judge(row, messages, written, judge)
            except Exception as error:  # noqa: BLE001 - a judge that cannot look leaves the user unjudged, nothing else
                problem, looked = f"{type(error).__name__}: {error}", False
        spoiling = self.config.user_fault_checks if self.config.mask_user_faults else ()
        return audit.Report(tuple(faults), looked, spoiling, problem)

    async def _close_session(self, request: Request) -> Answer:
        close = request.checked(_Close)
        handle = close.resources_session_id
        session = self._by_handle.get(handle)
        if session is not None and session.state is not None and session.state.seed.episode_id != close.episode_id:
            raise Refused(409, f"session {handle!r} belongs to another episode", kind="session_conflict")
        self._by_handle.pop(handle, None)
        if session is not None:
            self.sessions.drop(session)
            self._bury(session.cookie)
        self._bury(handle)
        return json_answer({"resources_session_id": handle})

    def _bury(self, name: str) -> None:
        now = time.monotonic()
        self._closed[name] = now + self.config.session_ttl_seconds
        while len(self._closed) > _TOMBSTONES or next(iter(self._closed.values())) <= now:
            self._closed.popitem(last=False)

    def _reply(self, session: Session[_Seeded], content: Any) -> Answer:
        return json_answer(content, headers={b"set-cookie": self.sessions.set_cookie(session)})

    async def aclose(self) -> None:
        """Let go of the connections to the judge."""
        if self.judge is not None:
            await self.judge.aclose()
