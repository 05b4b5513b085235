"""Sessions of a server: an unguessable signed cookie each, bounded in number and in time.

NeMo Gym signs its cookie with the cookie's own name, so anyone can forge one; here the key is random, and a cookie is
looked up, not decoded. A rollout's session lives until it has been idle for ``ttl`` seconds; once it is finished, for
``linger`` seconds more, so that a reply that got lost can be asked for again and a long run still does not leak.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from itsdangerous import BadSignature, Signer

State = TypeVar("State")

DEFAULT_LIMIT = 100_000
DEFAULT_TTL = 7200.0
DEFAULT_LINGER = 60.0
MAX_AGE = 1_209_600
"""Seconds that the cookie asks a browser to keep it: 14 days, as NeMo Gym's."""


class SessionsFull(Exception):
    """No session can be opened: the bound is reached and none is finished or expired."""


@dataclass(slots=True)
class Session(Generic[State]):
    """One rollout's place on a server."""

    cookie: str
    """The signed value of the session cookie."""
    seeded: bool = False
    """Whether ``/seed_session`` has been called on it."""
    state: State | None = None
    """What the environment keeps for this rollout."""
    handle: str | None = None
    """The ``resources_session_id`` of a typed seed."""
    seed: object = None
    """The body of a typed seed, to tell a repetition from a contradiction."""
    turn: asyncio.Lock | None = None
    """Held by the tool call that is under way, on servers where one waits for another."""
    expires: float = field(default=0.0, repr=False)
    """Monotonic time after which it is dropped."""

    @property
    def id(self) -> str:
        """Its name, without the signature."""
        return self.cookie.partition(".")[0]


class Sessions(Generic[State]):
    """The sessions of one server. ``name`` is the cookie's name; ``clock`` gives monotonic seconds."""

    def __init__(
        self,
        name: str,
        *,
        limit: int = DEFAULT_LIMIT,
        ttl: float = DEFAULT_TTL,
        linger: float = DEFAULT_LINGER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._limit = limit
        self._ttl = ttl
        self._linger = linger
        self._clock = clock
        self.key = secrets.token_bytes(32)
        """Signs the cookies, and whatever else stands for a session of this server."""
        self._signer = Signer(self.key)
        self._live: OrderedDict[str, Session[State]] = OrderedDict()
        self._finished: OrderedDict[str, Session[State]] = OrderedDict()
        self._named: dict[str, Session[State]] = {}

    def __len__(self) -> int:
        return len(self._live) + len(self._finished)

    def open(self) -> Session[State]:
        """A fresh session. Raises SessionsFull."""
        self._drop_expired()
        if len(self) >= self._limit:
            if not self._finished:
                raise SessionsFull(f"{len(self)} rollouts are open, which is the limit; close some or wait")
            self._unname(self._finished.popitem(last=False)[1])
        session: Session[State] = Session(self._signer.sign(uuid.uuid4().hex).decode())
        self._live[session.cookie] = session
        session.expires = self._clock() + self._ttl
        return session

    def find(self, cookie: str | None) -> Session[State] | None:
        """The session that ``cookie`` stands for, kept alive by this; None for no cookie or one not known."""
        if cookie is None:
            return None
        session = self._live.get(cookie)
        if session is not None:
            self._live.move_to_end(cookie)
            session.expires = self._clock() + self._ttl
            return session
        return self._finished.get(cookie)

    def give_name(self, session: Session[State], handle: str) -> None:
        """Let ``session`` be found by its caller's name for it."""
        session.handle = handle
        self._named[handle] = session

    def named(self, handle: str) -> Session[State] | None:
        """The session called ``handle``, kept alive by this; None for a name that no open session has."""
        session = self._named.get(handle)
        return None if session is None else self.find(session.cookie)

    def by_id(self, session_id: str) -> Session[State] | None:
        """The session whose cookie is the signed ``session_id``, kept alive by this; None for one not known."""
        return self.find(self._signer.sign(session_id).decode())

    def was_ours(self, cookie: str) -> bool:
        """Whether this server once issued ``cookie`` (a forged one was never ours; an expired one was)."""
        try:
            self._signer.unsign(cookie)
        except BadSignature:
            return False
        return True

    def finish(self, session: Session[State]) -> None:
        """The rollout is verified: keep the session only for a repeated request."""
        if self._live.pop(session.cookie, None) is not None:
            session.expires = self._clock() + self._linger
            self._finished[session.cookie] = session

    def drop(self, session: Session[State]) -> None:
        """Forget the session and its state."""
        self._live.pop(session.cookie, None)
        self._finished.pop(session.cookie, None)
        self._unname(session)

    def set_cookie(self, session: Session[State]) -> bytes:
        """The ``Set-Cookie`` line for a reply."""
        return f"{self.name}={session.cookie}; path=/; Max-Age={MAX_AGE}; httponly; samesite=lax".encode("latin-1")

    def _drop_expired(self) -> None:
        now = self._clock()
        for sessions in (self._live, self._finished):
            while sessions and next(iter(sessions.values())).expires <= now:
                self._unname(sessions.popitem(last=False)[1])

    def _unname(self, session: Session[State]) -> None:
        if session.handle is not None and self._named.get(session.handle) is session:
            del self._named[session.handle]
