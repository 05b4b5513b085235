"""One call of a model server, as it comes to be known, and the record that is kept of it."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from gymkit.servers.http import Refused
from gymkit.wire import codec
from gymkit.wire.dialects.dropped import Converted, Dropped

_CATEGORIES = {408: "timeout", 504: "timeout", 429: "rate_limit", 401: "auth", 403: "auth", 404: "not_found"}


class ModelFailed(Refused):
    """No reply of the model: ``status`` is the upstream's own where it answered, 502 or 504 where it did not.

    ``final`` says that asking again cannot help, ``retry_after`` when to (seconds); ``category`` groups failures.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str,
        category: str | None = None,
        final: bool = False,
        retry_after: float | None = None,
    ) -> None:
        self.category = category or category_of(status)
        self.final = final
        self.retry_after = retry_after
        super().__init__(status, detail, kind=kind)


def category_of(status: int) -> str | None:
    """The group of failures that an HTTP status belongs to; None for a success."""
    if status < 400:
        return None
    return _CATEGORIES.get(status, "upstream_error" if status >= 500 else "client_error")


@dataclass(slots=True)
class ModelCall:
    """What is known of one call. The model behind fills in how its reply came about."""

    dialect: str
    """``responses``, ``chat`` or ``messages``: the client's."""
    rollout: str | None = None
    """The rollout it belongs to, from the path; without one it is not recorded."""
    training: bool = False
    """True: token ids are wanted, in the record and not in the reply."""
    session: str = ""
    """Tells the calls of one client from another's: the session cookie."""
    client_session_id: str | None = None
    """The client's own name for its session, from ``x-session-id``."""
    streamed: bool = False
    """Whether the reply goes out as events."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Id of the call."""
    started_at: float = field(default_factory=time.time)
    """Seconds since 1970."""
    clock: float = field(default_factory=time.perf_counter)
    """Monotonic seconds when it started."""
    tokens: dict[str, Any] | None = None
    """The token fields, where the model tells them."""
    upstream_attempted: bool = False
    """Whether the model was asked."""
    upstream_status_code: int | None = None
    """The last status that the model's server answered with."""
    response_source: str | None = None
    """``upstream`` for a reply of the model, ``local`` for one made in its place."""
    local_response_reason: str | None = None
    """Why a reply was made in its place."""
    error_category: str | None = None
    """What kind of failure it was."""
    dropped: list[Dropped] = field(default_factory=list)
    """What conversions had no place for."""

    def converted(self, made: Converted) -> dict[str, Any]:
        """The value of a conversion; what it dropped is kept in mind."""
        self.dropped += made.dropped
        return made.value

    def asked(self) -> None:
        """The model is asked now."""
        self.upstream_attempted = True

    def answered(self, status: int = 200) -> None:
        """The model answered."""
        self.upstream_status_code = status
        self.response_source = "upstream"

    def made_locally(self, reason: str) -> None:
        """A reply is made in the model's place."""
        self.response_source = "local"
        self.local_response_reason = reason


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call, done: what a capture keeps. The bodies are the bytes that crossed the wire."""

    rollout: str
    """The rollout it belongs to."""
    facts: dict[str, Any]
    """Everything but the bodies."""
    request: bytes
    """What the client sent."""
    response: bytes
    """The reply, or the error; empty when the client was gone. A stream's is the reply that its events tell."""

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return len(self.request) + len(self.response) + 1000

    def fields(self) -> dict[str, Any]:
        """The record as it is written: ``request`` and ``response`` parsed, or else as ``…_raw`` text."""
        made = dict(self.facts)
        for name, body in (("request", self.request), ("response", self.response)):
            try:
                made[name] = codec.loads(body) if body else None
            except ValueError:
                made[name], made[f"{name}_raw"] = None, body.decode("utf-8", "replace")
        return made

    def light(self) -> dict[str, Any]:
        """The same for whoever writes it on: the bodies of a call that went well stay bytes (``codec.Raw``)."""
        if self.facts["status_code"] != 200 or not self.request or not self.response:
            return self.fields()
        request, response = codec.Raw.of(self.request), codec.Raw.of(self.response)
        if request is None or response is None:
            return self.fields()
        return {**self.facts, "request": request, "response": response}


def record_of(call: ModelCall, server: str, status: int | None, request: bytes, response: bytes) -> CallRecord:
    """The record of ``call``, which ends now; ``status`` is what the client gets."""
    latency = (time.perf_counter() - call.clock) * 1000
    facts: dict[str, Any] = {
        "model_call_id": call.id,
        "dialect": call.dialect,
        "model_ref": {"type": "responses_api_models", "name": server},
        "started_at": call.started_at,
        "completed_at": call.started_at + latency / 1000,
        "latency_ms": latency,
        "latency_ttft_ms": latency if call.streamed and response else None,
        "status_code": status,
        "error_category": call.error_category,
        "client_session_id": call.client_session_id,
        "upstream_attempted": call.upstream_attempted,
        "response_source": call.response_source,
        "upstream_status_code": call.upstream_status_code,
        "local_response_reason": call.local_response_reason,
    }
    if call.training:
        facts["token_capture"] = True
    if call.tokens is not None:
        facts["tokens"] = call.tokens
    if call.dropped:
        facts["dropped"] = [drop._asdict() for drop in call.dropped]
    return CallRecord(call.rollout or "", facts, request, response)
