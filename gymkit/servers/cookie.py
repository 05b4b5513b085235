"""A signed cookie with nothing behind it: it tells a client's calls from another's and costs no memory."""

from __future__ import annotations

import hmac
import secrets
import uuid

from gymkit.servers.session import MAX_AGE


class SignedCookie:
    """The cookie of one server. ``name`` is the cookie's name; its key lasts as long as this object."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._key = secrets.token_bytes(32)

    def keep(self, value: str | None) -> str:
        """The value to send: the client's own if this server signed it, or else a new one."""
        if value is not None:
            session, _, signature = value.partition(".")
            if hmac.compare_digest(self._sign(session).encode(), signature.encode("latin-1", "replace")):
                return value
        session = uuid.uuid4().hex
        return f"{session}.{self._sign(session)}"

    def line(self, value: str) -> bytes:
        """The ``Set-Cookie`` line for a reply."""
        return f"{self.name}={value}; path=/; Max-Age={MAX_AGE}; httponly; samesite=lax".encode("latin-1")

    def _sign(self, session: str) -> str:
        return hmac.digest(self._key, session.encode("latin-1", "replace"), "sha256").hex()
