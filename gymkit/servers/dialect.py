"""The three dialects that a model server speaks: who is let in, and how a reply is streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gymkit.errors import WireError
from gymkit.wire import chat, messages, responses
from gymkit.wire.dialects.dropped import Dropped
from gymkit.wire.dialects.tolerant import Names, regroup, tolerate_chat, tolerate_responses
from gymkit.wire.streams import chat as chat_stream
from gymkit.wire.streams import messages as messages_stream
from gymkit.wire.streams import responses as responses_stream

_RESPONSES_FIELDS = frozenset(responses.Request.__annotations__)

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that was let in."""

    params: dict[str, Any]
    """The request in its own dialect, without what only streaming needs."""
    stream: bool = False
    """Whether the reply goes out as events."""
    dropped: list[Dropped] = field(default_factory=list)
    """What was taken off, because the client streams."""
    groups: Names = field(default_factory=dict)
    """The tools that the client has in groups."""
    usage: bool = False
    """Whether a stream ends with a count of tokens."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One dialect."""

    name: str
    """As a record names it."""
    admit: Callable[[dict[str, Any]], Admitted]
    """Check a request's body. Raises WireError."""
    events: Callable[[Reply, Admitted], Iterator[bytes]]
    """A reply as events."""
    failure: Callable[[str, str], bytes]
    """What ends an open stream when there is no reply: message and kind."""


def _strictly(body: dict[str, Any], fields: frozenset[str]) -> None:
    unknown = [f"{name}: is not a field of this object" for name in body if name not in fields]
    if unknown:
        raise WireError("the request", unknown)


def _admit_responses(body: dict[str, Any]) -> Admitted:
    if body.get("stream"):
        params, dropped, groups = tolerate_responses(body)
        responses.check_request(params)
        return Admitted(params, stream=True, dropped=dropped, groups=groups)
    responses.check_request(body)
    _strictly(body, _RESPONSES_FIELDS)
    return Admitted(body)


def _admit_chat(body: dict[str, Any]) -> Admitted:
    if body.get("stream") is True:
        params, dropped = tolerate_chat(body)
        chat.check_request(params)
        options = body.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True
        return Admitted(params, stream=True, dropped=dropped, usage=usage)
    chat.check_request(body)
    _strictly(body, chat.FIELDS)
    return Admitted(body)


def _admit_messages(body: dict[str, Any]) -> Admitted:
    messages.check_request(body)
    return Admitted(body, stream=bool(body.get("stream")))


RESPONSES = Dialect(
    "responses",
    _admit_responses,
    lambda reply, admitted: responses_stream.events(regroup(reply, admitted.groups)),
    responses_stream.failure,
)
CHAT = Dialect(
    "chat",
    _admit_chat,
    lambda reply, admitted: chat_stream.events(reply, usage=admitted.usage),
    chat_stream.failure,
)
MESSAGES = Dialect(
    "messages",
    _admit_messages,
    lambda reply, _: messages_stream.events(reply),
    messages_stream.failure,
)
