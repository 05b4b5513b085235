"""A resources server: an environment's tools, its state for each rollout, and its verifier.

A subclass names its task's fields, marks its tools and scores a response::

    class Counter(ResourcesServer[int]):
        implementation = "counter"

        class Task(TaskRow):
            initial_count: int

        def seed(self, task): return task.initial_count

        @tool
        def get_counter_value(self, state): return {"count": state}

        def verify(self, state, task, response): return 1.0

``seed`` gives the state of one rollout (its mutable object, or anything for a server without state); tools and
``verify`` receive it. Everything an agent must not see (the task's other fields) stays on this side of the wire.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.http import Answer, Refused, Request, json_answer
from gymkit.servers.session import Session, Sessions, SessionsFull
from gymkit.servers.tool import is_tool_name, problems, tools_of, unknown_tool
from gymkit.wire.responses import check_response
from gymkit.wire.tasks import TaskRow

State = TypeVar("State")

_TOMBSTONES = 100_000
_TOMBSTONE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier says of one rollout, where a bare number is not enough."""

    reward: float
    """The scalar reward, finite, by convention 0 to 1."""
    mask_sample: bool = False
    """True: the reward is not a measurement of the agent and no mean may contain it."""
    failure_kind: str | None = None
    """A name for what went wrong, to group by."""
    failure_reason: str | None = None
    """A sentence for what went wrong."""
    reward_components: Mapping[str, float] | None = None
    """Decoupled objectives, the same keys for every task."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the reply; top-level numbers become metrics."""

    def fields(self) -> dict[str, Any]:
        """The verdict as the fields of a verify reply; what is unknown is absent."""
        fields: dict[str, Any] = {**self.extras, "reward": float(self.reward), "mask_sample": self.mask_sample}
        for name in ("failure_kind", "failure_reason"):
            if (value := getattr(self, name)) is not None:
                fields[name] = value
        if self.reward_components is not None:
            fields["reward_components"] = {name: float(value) for name, value in self.reward_components.items()}
        return fields


class _TypedSeed(BaseModel):
    """The seed of an environment server (a row of an agent's ``/run`` is the other form)."""

    model_config = ConfigDict(extra="forbid")

    resources_session_id: str = Field(min_length=1)
    """The caller's name for the session."""
    episode_id: dict[str, Any]
    """The episode it belongs to."""
    task_id: dict[str, Any]
    """The task it belongs to."""
    task_data: dict[str, Any]
    """The task's fields."""


class ResourcesServer(ServerApp, Generic[State]):
    """Base of every resources server; see the module's example."""

    server_type = "resources_servers"
    stateless: ClassVar[bool] = False
    """True: tools and verifier need no state, so a response can be scored on a session that was never seeded."""
    Task: ClassVar[type[TaskRow]] = TaskRow
    """The fields that a task row needs besides ``responses_create_params``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.tools = tools_of(self)
        self.sessions: Sessions[State] = Sessions(f"{type(self).__name__}___{name}")
        self._closed: OrderedDict[str, float] = OrderedDict()

    def seed(self, task: Any) -> State | Awaitable[State]:
        """The state of a new rollout of ``task`` (an instance of ``Task``)."""
        return None  # type: ignore[return-value]

    def verify(self, state: State, task: Any, response: dict[str, Any]) -> float | Verdict | Awaitable[float | Verdict]:
        """Score ``response``, the whole trajectory as one Responses API object. Abstract."""
        raise NotImplementedError

    @classmethod
    def check_task(cls, row: Mapping[str, Any]) -> list[str]:
        """What is wrong with a task row: one ``field: reason`` each, none for a good row."""
        try:
            cls.Task.model_validate(row)
        except ValidationError as error:
            return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]
        return []

    def handlers(self) -> Mapping[str, Handler]:
        """Seed, verify, close and metrics; every other POST is a tool."""
        return {
            "POST /seed_session": self._seed_session,
            "POST /verify": self._verify,
            "POST /close_session": self._close_session,
            "POST /aggregate_metrics": self.aggregated,
            "GET /reverify_mode": self._reverify_mode,
        }

    async def other(self, request: Request) -> Any:
        """A tool, by the name in the path."""
        if request.method != "POST":
            return await super().other(request)
        return await self._tool(request.path.removeprefix("/"), request)

    async def _seed_session(self, request: Request) -> Answer:
        body = request.json_object()
        typed = _typed(body)
        if typed is None:
            session = self._session(request)
            await self._start(session, body)
            return self._reply(session, {})
        session = self._typed_session(typed, body)
        if not session.seeded:
            await self._start(session, _flat(typed.task_data))
        return self._reply(session, {"resources_session_id": typed.resources_session_id})

    def _typed_session(self, typed: _TypedSeed, body: dict[str, Any]) -> Session[State]:
        handle = typed.resources_session_id
        if handle in self._closed:
            raise Refused(409, f"session {handle!r} was closed; seed a new one", kind="session_closed")
        session = self.sessions.named(handle)
        if session is None:
            session = self._open()
            self.sessions.give_name(session, handle)
            session.seed = body
        elif session.seed != body:
            raise Refused(409, f"session {handle!r} was seeded with another task or episode", kind="session_conflict")
        return session

    async def _start(self, session: Session[State], row: Mapping[str, Any]) -> None:
        try:
            task = self.Task.model_validate(row)
        except ValidationError as error:
            raise Refused(422, problems(error), kind="invalid_task") from error
        state = self.seed(task)
        session.state = await state if isinstance(state, Awaitable) else state
        session.seeded = True

    async def _tool(self, name: str, request: Request) -> Answer:
        session = self._session(request)
        if not is_tool_name(name) or name not in self.tools:
            return self._reply(session, {"detail": unknown_tool(name, list(self.tools)), "kind": "unknown_tool"}, 404)
        self._require_seed(session, request)
        arguments = request.json()
        if not isinstance(arguments, dict):
            return self._reply(session, {"detail": "arguments must be a JSON object", "kind": "invalid"}, 422)
        try:
            result = await self.tools[name](session.state, arguments)
        except ValidationError as error:
            return self._reply(session, {"detail": problems(error), "kind": "invalid_arguments"}, 422)
        return self._reply(session, result)

    async def _verify(self, request: Request) -> Answer:
        body = request.json_object()
        session = self._session(request)
        self._require_seed(session, request)
        response = body.get("response")
        check_response(response)
        try:
            task = self.Task.model_validate(body)
        except ValidationError as error:
            raise Refused(422, problems(error), kind="invalid_task") from error
        verdict = self.verify(session.state, task, response)  # type: ignore[arg-type]
        verdict = await verdict if isinstance(verdict, Awaitable) else verdict
        fields = verdict.fields() if isinstance(verdict, Verdict) else Verdict(verdict).fields()
        if not math.isfinite(fields["reward"]):
            raise Refused(500, f"the verifier gave a reward of {fields['reward']}", kind="verifier_error")
        self.sessions.finish(session)
        echo = {"responses_create_params": body["responses_create_params"], "response": response}
        return self._reply(session, {**echo, **fields})

    async def _close_session(self, request: Request) -> Answer:
        body = request.json_object()
        handle = body.get("resources_session_id")
        if not isinstance(handle, str) or not handle:
            raise Refused(422, "resources_session_id: a non-empty string is needed", kind="invalid")
        session = self.sessions.named(handle)
        if session is not None:
            self.sessions.drop(session)
        self._bury(handle)
        return json_answer({"resources_session_id": handle})

    async def _reverify_mode(self, _: Request) -> str:
        return "stateless" if self.stateless else "unsupported"

    def _session(self, request: Request) -> Session[State]:
        return self.sessions.find(request.cookie(self.sessions.name)) or self._open()

    def _open(self) -> Session[State]:
        try:
            return self.sessions.open()
        except SessionsFull as error:
            raise Refused(503, f"{self.name}: {error}", kind="sessions_full") from error

    def _require_seed(self, session: Session[State], request: Request) -> None:
        if session.seeded or self.stateless:
            return
        cookie = request.cookie(self.sessions.name)
        if cookie and cookie != session.cookie and self.sessions.was_ours(cookie):
            raise Refused(409, "the session has expired and its state is gone", kind="session_expired")
        raise Refused(409, "no seeded session: POST /seed_session first and send its cookie back", kind="session_lost")

    def _reply(self, session: Session[State], content: Any, status: int = 200) -> Answer:
        return json_answer(content, status, {b"set-cookie": self.sessions.set_cookie(session)})

    def _bury(self, handle: str) -> None:
        now = time.monotonic()
        self._closed[handle] = now + _TOMBSTONE_SECONDS
        self._closed.move_to_end(handle)
        while len(self._closed) > _TOMBSTONES or next(iter(self._closed.values())) <= now:
            self._closed.popitem(last=False)


def _typed(body: dict[str, Any]) -> _TypedSeed | None:
    """The typed form, or None for a row; a body that is almost typed counts as a row, as at NeMo Gym."""
    if "resources_session_id" not in body:
        return None
    try:
        return _TypedSeed.model_validate(body)
    except ValidationError:
        return None


def _flat(task_data: Mapping[str, Any]) -> dict[str, Any]:
    """A typed seed's task data as a row; the parameters go to the agent and are not in it."""
    return {"responses_create_params": {"input": []}, **task_data}
