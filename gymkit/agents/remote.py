"""``remote_agent``: drives an agent that somebody hosts as an HTTP service of its own.

The service answers ``POST /v1/responses`` with its next step. This server keeps the loop: it seeds the environment,
sends the conversation so far, executes the tool calls that come back without an output, appends the results, asks
again, and verifies the finished trajectory. The service sees the task's ``responses_create_params`` and its own
cookies, nothing else. Whatever goes wrong becomes a failure row with a sentence, never a crash and never a score.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gymkit.agents.trace import Trace
from gymkit.errors import InvalidReply, ServerError, WireError
from gymkit.servers.agent import AgentServer
from gymkit.servers.route import CookieJar, Reply, Route, base_url_problem, close_all
from gymkit.servers.tool import is_tool_name, unknown_tool
from gymkit.wire import codec
from gymkit.wire.responses import check_request, check_response, unpaired_calls
from gymkit.wire.tasks import strip_result_fields

log = logging.getLogger("gymkit")

CONNECT_ATTEMPTS = 3
FAILURE_CLASS = "remote_agent_error"


class RemoteAgentConfig(BaseModel):
    """The knobs of a remote agent; the names and defaults are the seed's."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    agent_base_url: str
    """The service's base URL: http or https, no query string, no fragment, no credentials."""
    concurrency: int = Field(32, gt=0)
    """Rollouts in flight against the service, at most."""
    remote_responses_timeout_secs: float = Field(1800.0, gt=0, allow_inf_nan=False)
    """Seconds that one call of the service may take."""
    run_timeout_secs: float = Field(2100.0, gt=0, allow_inf_nan=False)
    """Seconds that a whole rollout may take, from the moment it has its concurrency slot."""
    max_steps: int | None = Field(None, gt=0)
    """Calls of the service in one rollout, at most; None leaves ``run_timeout_secs`` as the only bound."""

    @field_validator("agent_base_url")
    @classmethod
    def _usable(cls, url: str) -> str:
        if problem := base_url_problem(url):
            raise ValueError(f"agent_base_url {problem}")
        return url.rstrip("/")


class RolloutFailed(Exception):
    """Ends a rollout: ``kind`` groups it, ``terminal`` says that a retry cannot help."""

    def __init__(self, message: str, *, kind: str, terminal: bool = False) -> None:
        self.kind = kind
        self.terminal = terminal
        super().__init__(message)


class RemoteAgent(AgentServer):
    """The server; in a notebook ``gymkit.RemoteAgent`` makes one, in YAML ``remote_agent:`` does."""

    implementation = "remote_agent"

    def __init__(self, name: str, config: RemoteAgentConfig, resources: Route) -> None:
        super().__init__(name, resources)
        self.config = config
        self.service = Route.to_url(f"{name} service", config.agent_base_url)
        self._slots = asyncio.Semaphore(config.concurrency)
        self._usage_missed = False

    async def run(self, row: dict[str, Any]) -> dict[str, Any]:
        """One rollout: the verify reply, or a failure row. Only cancellation raises."""
        row = strip_result_fields(row)
        async with self._slots:
            trace = Trace()
            bound = asyncio.timeout(self.config.run_timeout_secs)
            try:
                async with bound:
                    verified = await self._episode(row, trace)
            except Exception as error:  # noqa: BLE001 - the seed: every failure is a row in the sidecar
                return self._failure(row, trace, self._cause(error, trace, bound.expired()))
        return {**verified, "gymkit": trace.fields()}

    async def aclose(self) -> None:
        """Let go of the connections to the service and the environment."""
        await close_all([self.service, self.resources])

    async def _episode(self, row: dict[str, Any], trace: Trace) -> dict[str, Any]:
        params = _conversation(row)
        session = CookieJar()
        await self._seed(row, session)
        await self._loop(params, session, trace)
        return await self._verify({**row, "response": self._merged(trace)}, session)

    async def _seed(self, row: dict[str, Any], session: CookieJar) -> None:
        try:
            session.take((await self._environment("/seed_session", row, session)).expect_ok())
        except ServerError as error:
            raise RolloutFailed(f"seeding failed: {error}", kind="seed") from error

    async def _loop(self, params: dict[str, Any], session: CookieJar, trace: Trace) -> None:
        declared = {tool.get("name") for tool in params.get("tools") or () if isinstance(tool, dict)}
        task_input = params["input"]
        own_cookies = CookieJar()
        while not trace.termination_reason:
            reply = await self._ask({**params, "input": [*task_input, *trace.output]}, own_cookies)
            calls = unpaired_calls(reply["output"])
            trace.step(reply, bool(calls))
            if trace.termination_reason:
                return
            for call in calls:
                await self._execute(call, declared, session, trace)
            if trace.steps == self.config.max_steps:
                trace.termination_reason = "max_steps"

    async def _ask(self, params: dict[str, Any], cookies: CookieJar) -> dict[str, Any]:
        answer = await self.service.post(
            "/v1/responses",
            params,
            cookies=cookies,
            timeout=self.config.remote_responses_timeout_secs,
            knob="remote_responses_timeout_secs",
            attempts=CONNECT_ATTEMPTS,
        )
        reply = answer.expect_ok().json()
        try:
            usage = check_response(reply)
        except WireError as error:
            message = (
                f"{answer.url} answered with an object that is no Responses API response: {'; '.join(error.problems)}"
            )
            raise InvalidReply(message, server=answer.server, url=answer.url) from error
        if usage is None:
            self._warn_of_missing_usage(answer.url)
        cookies.take(answer)
        return reply  # type: ignore[no-any-return]

    async def _execute(self, call: dict[str, Any], declared: set[Any], session: CookieJar, trace: Trace) -> None:
        name, error = call["name"], None
        started = time.perf_counter()
        arguments = _arguments(call["arguments"])
        if not is_tool_name(name):
            error, output = "undeclared", codec.dumps({"detail": unknown_tool(name), "kind": "unknown_tool"}).decode()
        elif isinstance(arguments, ValueError):
            error, output = "malformed", codec.dumps({"error": f"Invalid tool call arguments: {arguments}"}).decode()
        else:
            reply = await self._environment(f"/{name}", arguments, session)
            session.take(reply)
            output = reply.text
            error = "undeclared" if name not in declared else "failed" if reply.status >= 300 else None
        trace.executed(call["call_id"], output, error, time.perf_counter() - started)

    async def _environment(self, path: str, payload: dict[str, Any], session: CookieJar) -> Reply:
        return await self.resources.post(
            path,
            payload,
            cookies=session,
            attempts=CONNECT_ATTEMPTS,
        )

    def _merged(self, trace: Trace) -> dict[str, Any]:
        response = {**trace.last, "output": trace.output}
        response.pop("usage", None)
        if (usage := trace.usage()) is not None:
            response["usage"] = usage
        return response

    async def _verify(self, body: dict[str, Any], session: CookieJar) -> dict[str, Any]:
        try:
            reply = (await self._environment("/verify", body, session)).expect_ok()
            verified = reply.json_object()
        except ServerError as error:
            raise RolloutFailed(f"verification failed: {error}", kind="verify") from error
        reward = verified.get("reward")
        if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
            raise RolloutFailed(f"verification failed: {reply.url} answered without a finite reward", kind="verify")
        return verified

    def _cause(self, error: Exception, trace: Trace, out_of_time: bool) -> RolloutFailed:
        trace.termination_reason = "deadline" if out_of_time else "error"
        if out_of_time:
            bound = f"run_timeout_secs={self.config.run_timeout_secs:g} s"
            message = f"the rollout did not finish within {bound} ({trace.steps} calls of {self.service.url})"
            return RolloutFailed(message, kind="timeout")
        if isinstance(error, RolloutFailed):
            return error
        if isinstance(error, ServerError):
            return RolloutFailed(str(error), kind=error.kind, terminal=error.terminal)
        if not isinstance(error, WireError):
            log.exception("%s: a rollout failed in gymkit itself", self.name, exc_info=error)
        return RolloutFailed(f"{type(error).__name__}: {error}", kind="agent_error")

    def _failure(self, row: dict[str, Any], trace: Trace, cause: RolloutFailed) -> dict[str, Any]:
        failure = {
            **row,
            "response": _placeholder(self.name),
            "reward": 0.0,
            "mask_sample": False,
            "failure_kind": cause.kind,
            "error": str(cause),
            "_ng_failure_class": FAILURE_CLASS,
            "gymkit": trace.fields(),
        }
        if cause.terminal:
            failure["_ng_failure_terminal"] = True
        if trace.steps:
            failure["_ng_failure_partial_response"] = self._merged(trace)
        return failure

    def _warn_of_missing_usage(self, url: str) -> None:
        if not self._usage_missed:
            self._usage_missed = True
            log.warning("%s reports no usage: the token columns of its rollouts stay empty", url)


def _conversation(row: dict[str, Any]) -> dict[str, Any]:
    params = row.get("responses_create_params")
    check_request(params)
    task_input = params["input"]  # type: ignore[index]
    if isinstance(task_input, str):
        task_input = [{"role": "user", "content": task_input, "type": "message"}]
    return {**params, "input": task_input}  # type: ignore[dict-item]


def _arguments(text: str) -> dict[str, Any] | ValueError:
    try:
        arguments = codec.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        return error
    return arguments if isinstance(arguments, dict) else ValueError("they must be a JSON object")


def _placeholder(name: str) -> dict[str, Any]:
    """A response for a row that has none: NeMo Gym's readers want the field."""
    content = [{"type": "output_text", "text": "", "annotations": []}]
    return {
        "id": "remote_agent_failure",
        "created_at": 0.0,
        "model": name,
        "object": "response",
        "output": [{"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": content}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
