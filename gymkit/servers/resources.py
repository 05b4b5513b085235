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

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import ValidationError

from gymkit.errors import JudgeFailed, JudgeUnparseable, ServerError
from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.http import Answer, Refused, Request, json_answer
from gymkit.servers.mcp import McpDoor, bare_names
from gymkit.servers.seeding import TypedSeed, typed_seed
from gymkit.servers.session import Session, Sessions, SessionsFull
from gymkit.servers.tool import Tool, ToolAnswer, encoded, is_tool_name, problems, tools_of, unknown_tool
from gymkit.servers.verdict import REASON, Verified, judge_failed
from gymkit.servers.verdict import Verdict as Verdict
from gymkit.servers.whereabouts import traceback_of
from gymkit.wire import codec
from gymkit.wire.responses import check_response
from gymkit.wire.tasks import TaskRow

log = logging.getLogger("gymkit")

State = TypeVar("State")

_TOMBSTONES = 100_000
_TOMBSTONE_SECONDS = 3600.0


class ResourcesServer(ServerApp, Generic[State]):
    """Base of every resources server; see the module's example."""

    server_type = "resources_servers"
    stateless: ClassVar[bool] = False
    """True: tools and verifier need no state, so a response can be scored on a session that was never seeded."""
    Task: ClassVar[type[TaskRow]] = TaskRow
    """The fields that a task row needs besides ``responses_create_params``."""

    def __init__(self, name: str, *, expose_tools_over_mcp: bool = False) -> None:
        super().__init__(name)
        self.tools: dict[str, Tool] = tools_of(self)
        self.sessions: Sessions[State] = Sessions(f"{type(self).__name__}___{name}")
        self._mcp = McpDoor(name, self) if expose_tools_over_mcp else None
        self._closed: OrderedDict[str, float] = OrderedDict()
        self._told: set[str] = set()

    def seed(self, task: Any) -> State | Awaitable[State]:
        """The state of a new rollout of ``task`` (an instance of ``Task``)."""
        return None  # type: ignore[return-value]

    def verify(self, state: State, task: Any, response: dict[str, Any]) -> Verified | Awaitable[Verified]:
        """Score ``response``, the whole trajectory as one Responses API object: a number, a Verdict or its fields.

        Abstract. A judge's failure is let through: JudgeFailed, JudgeUnparseable and ServerError become masked rows.
        """
        raise NotImplementedError

    async def verdict(self, state: State, task: Any, response: dict[str, Any]) -> Verdict:
        """What ``verify`` says, checked. Raises Refused when that is no verdict."""
        said = self.verify(state, task, response)
        try:
            return Verdict.of(await said if isinstance(said, Awaitable) else said)
        except (TypeError, ValueError) as error:
            raise Refused(500, f"the verifier {error}", kind="verifier_error") from error

    def allowed_tools(self, row: Mapping[str, Any]) -> list[str] | None:
        """The tools that a rollout of ``row`` may call over MCP: those that it declares; None for all there are."""
        declared = (row.get("responses_create_params") or {}).get("tools")
        return [str(tool.get("name")) for tool in declared if isinstance(tool, Mapping)] if declared else None

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
        mcp = {f"{method} /mcp": self._mcp.answer for method in ("POST", "GET", "DELETE")} if self._mcp else {}
        return {
            **mcp,
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
        typed = typed_seed(body)
        if typed is None:
            session = self._session(request)
            await self._start(session, body)
            return self._reply(session, self._offered("mcp", session, body))
        session = self._typed_session(typed, body)
        if not session.seeded:
            await self._start(session, typed.row)
        offered = self._offered("resources_tools", session, typed.row)
        return self._reply(session, {"resources_session_id": typed.resources_session_id, **offered})

    def _offered(self, key: str, session: Session[State], row: Mapping[str, Any]) -> dict[str, Any]:
        """How the tools of this session are reached over MCP, where they are."""
        return {key: self._mcp.metadata(session, self.allowed_tools(row))} if self._mcp else {}

    def _typed_session(self, typed: TypedSeed, body: dict[str, Any]) -> Session[State]:
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
        if is_tool_name(name) and name in self.tools:
            session, arguments = self._seeded(request), request.json()
        else:
            session, arguments = self._session(request), {}
        status, body = await self.call_tool(session, name, arguments)
        cookie = (b"set-cookie", self.sessions.set_cookie(session))
        return Answer(body, status, [(b"content-type", b"application/json"), cookie])

    async def call_tool(self, session: Session[State], name: str, arguments: Any) -> ToolAnswer:
        """Run a tool in a seeded session. Whatever goes wrong is an answer for the agent to read."""
        tool = self.tools.get(name) if is_tool_name(name) else None
        if tool is None:
            return _tool_error(404, unknown_tool(name, list(self.tools)), "unknown_tool")
        if not isinstance(arguments, dict):
            return _tool_error(422, "arguments must be a JSON object", "invalid")
        try:
            checked = tool.checked(arguments)
        except ValidationError as error:
            return _tool_error(422, problems(error), "invalid_arguments")
        try:
            return ToolAnswer(200, encoded(await tool(session.state, checked)))
        except Refused as error:
            return _tool_error(error.status, error.detail, error.kind)
        except Exception as error:  # noqa: BLE001 - an agent reads what its call did; the rollout goes on
            self._tell(f"the tool {name}", error)
            return _tool_error(500, f"{type(error).__name__}: {error}", "tool_error")

    def _tell(self, what: str, error: Exception) -> None:
        """Log where somebody's code broke: whole for the first time, since a run may break it a thousand times."""
        sort = f"{what} {type(error).__name__}"
        first = sort not in self._told
        self._told.add(sort)
        level = logging.WARNING if first else logging.DEBUG
        log.log(level, "%s: %s raised\n%s", self.name, what, traceback_of(error))

    async def _verify(self, request: Request) -> Answer:
        body = request.json_object()
        session = self._seeded(request)
        response = body.get("response")
        check_response(response)
        try:
            task = self.Task.model_validate(body)
        except ValidationError as error:
            raise Refused(422, problems(error), kind="invalid_task") from error
        fields = await self._verdict_fields(session, task, body)
        self.sessions.finish(session)
        echo = {"responses_create_params": body["responses_create_params"], "response": response}
        return self._reply(session, {**echo, **fields})

    async def _verdict_fields(self, session: Session[State], task: TaskRow, body: dict[str, Any]) -> dict[str, Any]:
        """The verdict as fields of the reply; a judge that failed masks it, whatever kind of server this is."""
        response = bare_names(body["response"], self.tools) if self._mcp else body["response"]
        try:
            return (await self.verdict(session.state, task, response)).fields()  # type: ignore[arg-type]
        except JudgeUnparseable as error:
            log.info("%s: %s", self.name, error)
            return Verdict.masked("judge_unparseable", str(error)[:REASON]).fields()
        except (JudgeFailed, ServerError) as error:
            log.info("%s: %s", self.name, error)
            return judge_failed(body, error)

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

    def _seeded(self, request: Request) -> Session[State]:
        """The seeded session of ``request``. One that is over is not replaced: a late call would leave it behind."""
        cookie = request.cookie(self.sessions.name)
        session = self.sessions.find(cookie)
        if session is None and cookie and not self.stateless and self.sessions.was_ours(cookie):
            raise Refused(409, "the session has expired and its state is gone", kind="session_expired")
        session = session or self._open()
        if session.seeded or self.stateless:
            return session
        raise Refused(409, "no seeded session: POST /seed_session first and send its cookie back", kind="session_lost")

    def _reply(self, session: Session[State], content: Any, status: int = 200) -> Answer:
        return json_answer(content, status, {b"set-cookie": self.sessions.set_cookie(session)})

    def _bury(self, handle: str) -> None:
        now = time.monotonic()
        self._closed[handle] = now + _TOMBSTONE_SECONDS
        self._closed.move_to_end(handle)
        while len(self._closed) > _TOMBSTONES or next(iter(self._closed.values())) <= now:
            self._closed.popitem(last=False)


def _tool_error(status: int, detail: Any, kind: str) -> ToolAnswer:
    return ToolAnswer(status, codec.dumps({"detail": detail, "kind": kind}))
