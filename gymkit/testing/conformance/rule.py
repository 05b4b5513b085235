"""A rule of the contract that any server of a kind is held to, over its routes, and what trying it needs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

from gymkit.errors import ServerError
from gymkit.servers.http import AsgiApp
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.wire import codec

EXCERPT = 200
"""Characters told of a body."""


class Broken(AssertionError):
    """The rule is not kept; the message says what came instead."""


class NotApplicable(SkipTest):
    """There is nothing to hold the server to; pytest takes it for a skipped test."""


class Peer:
    """The server under test, and a record of what was said.

    ``task`` is a task row for those rules that need one.
    """

    def __init__(self, route: Route, task: Mapping[str, Any] | None = None, *, timeout: float = 30.0) -> None:
        self.route = route
        self.calls = 0
        self.sent = self.came = ""
        """The latest request and its answer, shortened."""
        self._task = task
        self._timeout = timeout
        self._number = 0
        self._run = f"{time.time_ns():x}"

    @property
    def task(self) -> dict[str, Any]:
        """The task row. Raises NotApplicable without one."""
        if self._task is None:
            raise NotApplicable("it takes a task row to try this: give one")
        return dict(self._task)

    def fresh(self, stem: str = "conformance") -> str:
        """A name that was not used before, on this server or any other."""
        self._number += 1
        return f"{stem}-{self._run}-{self._number}"

    async def get(self, path: str) -> Reply:
        """GET. Raises Broken when there is no answer."""
        return await self._answered(f"GET {path}", self.route.get(path, timeout=self._timeout))

    async def post(self, path: str, payload: Any = None, jar: CookieJar | None = None) -> Reply:
        """POST JSON (bytes as they are) with the cookies in ``jar``, which takes those of the answer.

        Raises Broken when there is no answer.
        """
        body = payload if isinstance(payload, bytes) else codec.dumps(payload)
        call = self.route.post(path, body, cookies=jar, timeout=self._timeout)
        reply = await self._answered(f"POST {path} {_cut(body.decode('utf-8', 'replace'))}", call)
        if jar is not None:
            jar.take(reply)
        return reply

    async def _answered(self, sent: str, call: Awaitable[Reply]) -> Reply:
        self.calls += 1
        self.sent, self.came = sent, ""
        try:
            reply = await call
        except ServerError as error:
            raise Broken(str(error)) from error
        self.came = f"{reply.status} {_cut(reply.text)}"
        return reply


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; ``str()`` is its name, so that it names a test."""

    name: str
    """A few words, the same in every report."""
    why: str
    """Why it matters, in one sentence."""
    fix: str
    """What to change in a server that does not keep it."""
    attempt: Callable[[Peer], Awaitable[None]]
    """Try it. Raises Broken or NotApplicable."""

    def check(
        self, where: str | Route | AsgiApp, task: Mapping[str, Any] | None = None, *, timeout: float = 30.0
    ) -> None:
        """Hold a server to this rule, from a test: ``where`` is a URL, a route, or an app in this process.

        Raises Broken (an AssertionError), or NotApplicable, which pytest takes for a skipped test.
        """
        asyncio.run(self._check(_route(where), task, timeout))

    async def _check(self, route: Route, task: Mapping[str, Any] | None, timeout: float) -> None:
        try:
            await self.attempt(Peer(route, task, timeout=timeout))
        finally:
            await route.aclose()

    def __str__(self) -> str:
        return self.name


def expect(reply: Reply, *statuses: int, of: str) -> Reply:
    """Return ``reply`` if it has one of ``statuses``. Raises Broken that says what ``of`` should have been answered."""
    if reply.status not in statuses:
        wanted = " or ".join(map(str, statuses))
        raise Broken(f"{of} was answered {reply.status}, not {wanted}: {_cut(reply.text)}")
    return reply


def refused(reply: Reply, *, of: str) -> Reply:
    """Return ``reply`` if it is a refusal (4xx). Raises Broken."""
    return expect(reply, *range(400, 500), of=of)


def body_of(reply: Reply) -> dict[str, Any]:
    """The JSON object in ``reply``. Raises Broken."""
    try:
        return reply.json_object()
    except ServerError as error:
        raise Broken(str(error)) from error


def same(reply: Reply, key: str, expected: Any) -> None:
    """Raises Broken unless the body has ``key`` with this value."""
    found = body_of(reply).get(key)
    if found != expected:
        raise Broken(f"{reply.url} answered with {key} {found!r:.80}, not {expected!r:.80}")


async def alive(peer: Peer) -> None:
    """GET / is 200."""
    expect(await peer.get("/"), 200, of="GET /")


ALIVE = Rule(
    "alive",
    "Whoever starts servers asks GET / until it is 200, and asks nothing else.",
    "Answer GET / with 200.",
    alive,
)


def _route(where: str | Route | AsgiApp) -> Route:
    if isinstance(where, Route):
        return where
    return Route.to_url("peer", where) if isinstance(where, str) else Route.to_app("peer", where)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"
