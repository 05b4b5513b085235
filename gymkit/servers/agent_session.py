"""Sessions of an agent server: seeded once, used any number of times, closed once, however often it is asked.

A caller that lost a reply asks again, so a repeated seed finds the session that is there, and a repeated close the
receipt of the first. A close that comes before its seed leaves a tombstone, which refuses the seed when it arrives.
What a cookie says is signed here: one that this server did not sign, or whose session is gone, is refused, never
taken for a call without a session.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from itsdangerous import BadSignature, Signer

from gymkit.servers.http import Refused
from gymkit.servers.session import DEFAULT_TTL, MAX_AGE
from gymkit.wire.agent_sessions import CloseAgentSession, SeedAgentSession
from gymkit.wire.tasks import EpisodeId

log = logging.getLogger("gymkit")

State = TypeVar("State")
A = TypeVar("A")
T = TypeVar("T")

RETRY_WINDOW = 300.0
"""Seconds for which a receipt is kept."""

LIMIT = 100_000
"""Open sessions, and receipts, at most."""

CLOSE_SECONDS = 5.0
"""Seconds that a server's end waits for the sessions that are left."""


class AgentSessionSetupError(Exception):
    """Raised by a hook that failed half-way: ``state`` is kept, so that closing can let go of it."""

    def __init__(self, error: Exception, state: Any) -> None:
        self.error = error
        self.state = state
        super().__init__(str(error))


@dataclass(slots=True, eq=False)
class _Live(Generic[State]):
    """A session that is open, or on its way in or out."""

    seed: SeedAgentSession
    expires: float
    opening: asyncio.Task[State]
    closing: asyncio.Task[dict[str, Any]] | None = None
    broken: bool = False
    """Its setup failed and left something behind: it can only be closed."""
    leaving: bool = False
    """A close has begun; nothing but a close is taken from here on."""
    at_work: set[asyncio.Task[Any]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Receipt:
    """What a close was answered with."""

    episode: EpisodeId
    reply: dict[str, Any]
    expires: float


class AgentSessions(Generic[State]):
    """The sessions of one agent server.

    ``name`` is the cookie's name, ``opened`` makes a session's state from its seed and ``closed`` lets go of it and
    returns what the close is answered with; ``window`` is the seconds that receipts are kept, ``ttl`` the seconds that
    a session may lie idle before it is closed from here, ``clock`` gives monotonic seconds.
    """

    def __init__(
        self,
        name: str,
        opened: Callable[[SeedAgentSession], Awaitable[State]],
        closed: Callable[[State], Awaitable[Mapping[str, Any]]],
        *,
        window: float = RETRY_WINDOW,
        ttl: float = DEFAULT_TTL,
        limit: int = LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._opened = opened
        self._closed = closed
        self._window = window
        self._ttl = ttl
        self._limit = limit
        self._clock = clock
        self._signer = Signer(secrets.token_bytes(32))
        self._live: OrderedDict[str, _Live[State]] = OrderedDict()
        self._receipts: OrderedDict[str, _Receipt] = OrderedDict()
        self._late: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._live)

    async def seed(self, seed: SeedAgentSession, cookie: str | None) -> None:
        """Open a session, or find the one that the same seed opened. Raises Refused, or what the hook raised."""
        self._sweep()
        handle = seed.agent_session_id
        marker = self._marker(cookie, handle)
        if handle in self._receipts:
            raise _conflict(handle, "is closed: choose a new agent_session_id", "session_closed")
        live = self._live.get(handle)
        if live is None:
            if marker is not None:
                raise _conflict(handle, "has expired", "session_expired")
            live = self._open(seed)
        elif live.leaving or live.broken:
            raise _conflict(handle, "is being closed", "session_closing")
        elif live.seed != seed:
            raise _conflict(handle, "was opened by another seed", "session_conflict")
        try:
            await asyncio.shield(live.opening)  # it goes on when the caller has gone
        except AgentSessionSetupError as error:
            raise error.error from None

    async def use(self, handle: str, work: Callable[[State], Awaitable[T]]) -> T:
        """Do ``work`` in the session ``handle``; a close cuts it short. Raises Refused for one that is not open."""
        live = self._live.get(handle)
        if live is None or live.leaving or live.broken or not live.opening.done():
            raise _conflict(handle, "is not open", "session_closed")
        task = asyncio.create_task(_called(work, live.opening.result()))
        live.at_work.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if live.leaving and not _cancelled_from_outside():
                raise _conflict(handle, "was closed meanwhile", "session_closed") from None
            task.cancel()
            raise
        finally:
            live.at_work.discard(task)
            self._touch(handle, live)

    async def close(self, close: CloseAgentSession, cookie: str | None) -> dict[str, Any]:
        """Let go of a session and return the receipt, the same one for a repeated close.

        Raises Refused, or what the hook raised: the session then stays, for nothing but another close.
        """
        self._sweep()
        handle = close.agent_session_id
        marker = self._marker(cookie, handle)
        live = self._live.get(handle)
        episode = live.seed.episode_id if live else self._receipts[handle].episode if handle in self._receipts else None
        if episode is not None and episode != close.episode_id:
            raise _conflict(handle, f"belongs to the episode {episode.capture_key}", "session_conflict")
        if live is not None:
            return await self._leave(handle, live)
        if handle in self._receipts:
            return self._receipts[handle].reply
        if marker is not None:
            raise _conflict(handle, "was closed so long ago that its receipt has expired", "session_expired")
        return self._bury(handle, close.episode_id, {})

    def set_cookie(self, handle: str) -> bytes:
        """The ``Set-Cookie`` line that binds its bearer to the session ``handle``."""
        name = base64.urlsafe_b64encode(handle.encode()).rstrip(b"=")  # clients put a value with = into quotes
        value = self._signer.sign(name).decode()
        return f"{self.name}={value}; path=/; Max-Age={MAX_AGE}; httponly; samesite=lax".encode("latin-1")

    def handle_of(self, cookie: str) -> str:
        """The session that ``cookie`` stands for, open or not. Raises Refused for one that was not signed here."""
        try:
            handle = base64.urlsafe_b64decode(self._signer.unsign(cookie) + b"==").decode()
        except (BadSignature, ValueError):
            handle = ""
        if not handle:
            raise Refused(409, f"the cookie {self.name} names no session of this server", kind="session_lost")
        return handle

    async def aclose(self) -> None:
        """Close every session, as far as their hooks allow."""
        for handle, live in list(self._live.items()):
            self._release(handle, live)
        if self._late:
            await asyncio.wait(self._late, timeout=CLOSE_SECONDS)

    def _open(self, seed: SeedAgentSession) -> _Live[State]:
        if len(self._live) >= self._limit:
            raise Refused(503, f"{len(self._live)} agent sessions are open, which is the limit", kind="sessions_full")
        handle = seed.agent_session_id
        opening = asyncio.create_task(_called(self._opened, seed))
        live = self._live[handle] = _Live(seed, self._clock() + self._ttl, opening)

        def settle(task: asyncio.Task[State]) -> None:
            error = None if task.cancelled() else task.exception()
            live.broken = isinstance(error, AgentSessionSetupError)
            if (error is not None or task.cancelled()) and not live.broken and self._live.get(handle) is live:
                del self._live[handle]

        opening.add_done_callback(settle)
        return live

    async def _leave(self, handle: str, live: _Live[State]) -> dict[str, Any]:
        if live.closing is None or (live.closing.done() and handle in self._live):
            live.leaving = True
            live.closing = asyncio.create_task(self._close(handle, live))
            live.closing.add_done_callback(_heard)
        return await asyncio.shield(live.closing)

    async def _close(self, handle: str, live: _Live[State]) -> dict[str, Any]:
        await asyncio.wait([live.opening])
        for task in live.at_work:
            task.cancel()
        if live.at_work:
            await asyncio.wait(set(live.at_work))
        error = live.opening.exception()
        if error is None or isinstance(error, AgentSessionSetupError):
            state = live.opening.result() if error is None else error.state
            told = dict(await self._closed(state))
        else:
            told = {}  # it never came to be
        self._live.pop(handle, None)
        return self._bury(handle, live.seed.episode_id, told)

    def _bury(self, handle: str, episode: EpisodeId, told: dict[str, Any]) -> dict[str, Any]:
        reply = {"agent_session_id": handle, **told}
        self._receipts[handle] = _Receipt(episode, reply, self._clock() + self._window)
        if len(self._receipts) > self._limit:
            self._receipts.popitem(last=False)
        return reply

    def _touch(self, handle: str, live: _Live[State]) -> None:
        live.expires = self._clock() + self._ttl
        if handle in self._live:
            self._live.move_to_end(handle)

    def _sweep(self) -> None:
        """Drop receipts past their window, and close sessions that nobody has used for long."""
        now = self._clock()
        while self._receipts and next(iter(self._receipts.values())).expires <= now:
            self._receipts.popitem(last=False)
        for handle, live in list(self._idle(now)):
            log.warning("agent session %s of %s lay idle for %g s and is closed", handle, self.name, self._ttl)
            self._touch(handle, live)
            self._release(handle, live)

    def _idle(self, now: float) -> Iterator[tuple[str, _Live[State]]]:
        for handle, live in self._live.items():
            if live.expires > now:
                return
            if not live.at_work:
                yield handle, live

    def _release(self, handle: str, live: _Live[State]) -> None:
        """Close a session that nobody asked to close."""

        def let_go(task: asyncio.Task[Any]) -> None:
            self._late.discard(task)
            if error := _heard(task):
                log.warning("%s: agent session %s cannot be closed: %r", self.name, handle, error)

        task = asyncio.create_task(self._leave(handle, live))
        self._late.add(task)
        task.add_done_callback(let_go)

    def _marker(self, cookie: str | None, handle: str) -> str | None:
        """The session named by the cookie. Raises Refused when it is another one than ``handle``."""
        marker = None if cookie is None else self.handle_of(cookie)
        if marker is not None and marker != handle:
            raise _conflict(handle, f"is not the cookie's session, which is {marker}", "session_conflict")
        return marker


async def _called(function: Callable[[A], Awaitable[T]], argument: A) -> T:
    return await function(argument)  # called in here, since a task cancelled before it began calls nothing


def _cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _heard(task: asyncio.Task[Any]) -> BaseException | None:
    """Look at a failure that perhaps nobody waits for, so that asyncio does not complain of it."""
    return None if task.cancelled() else task.exception()


def _conflict(handle: str, problem: str, kind: str) -> Refused:
    return Refused(409, f"agent session {handle!r} {problem}", kind=kind)
