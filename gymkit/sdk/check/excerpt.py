"""What was sent and what came, short enough to read: one line each, with everything hidden made visible."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from gymkit.sdk.check.exchange import Exchange
from gymkit.views.html import trimmed, visible
from gymkit.wire import codec
from gymkit.wire.responses import message_text

LINE: Final = 400
"""Characters of an excerpt, at most."""

_PART: Final = 160
_GAPS: Final = re.compile(r"[ \t\r\n]+")  # other line ends are shown as what they are


def line(text: str) -> str:
    """``text`` on one line that is safe to print, cut to ``LINE`` characters with a note of how many more there are."""
    shown, more = trimmed(visible(_GAPS.sub(" ", text).strip()), LINE)
    return f"{shown} {more}" if more else shown


def request(exchange: Exchange) -> str:
    """What was sent: the last item of the conversation, the names of tools and cookies (values can be secrets)."""
    items = exchange.params["input"]
    earlier = f"{counted(len(items) - 1, 'earlier item')}, then " if len(items) > 1 else ""
    tools = ", ".join(str(tool.get("name")) for tool in exchange.params.get("tools") or ())
    cookies = f"; cookies: {', '.join(exchange.cookies)}" if exchange.cookies else ""
    last = cut(codec.dumps(items[-1]).decode()) if items else "nothing"
    return f"POST /v1/responses; input: {earlier}{last}; tools: {tools or 'none'}{cookies}"


def answer(exchange: Exchange) -> str:
    """What came: the items of a valid answer, else what was wrong, with the beginning of the body."""
    if exchange.error is None:
        return "; ".join(item(each) for each in exchange.output) or "a valid answer without items"
    reason = str(exchange.error)
    body = exchange.reply.text.strip() if exchange.reply else ""
    return f"{reason}; the body: {cut(body)}" if body and type(exchange.error).kind == "invalid_response" else reason


def item(each: Mapping[str, Any]) -> str:
    """One item of a conversation."""
    match each.get("type", "message"):
        case "message":
            return f"message of the {each.get('role')} {cut(message_text(dict(each)))!r}"
        case "function_call":
            return f"function_call {each['name']}({cut(each['arguments'])}) with call_id {each['call_id']!r}"
        case "function_call_output":
            return f"function_call_output with call_id {each['call_id']!r}: {cut(str(each['output']))}"
        case kind:
            return str(kind)


def duration(seconds: float) -> str:
    """A time in the unit that a person would give it in."""
    for unit, size, most in (("ms", 0.001, 1), ("s", 1, 90), ("min", 60, 5400)):
        if seconds < most:
            return f"{_figure(seconds / size)} {unit}"
    return f"{_figure(seconds / 3600)} h"


def counted(number: int, noun: str) -> str:
    """``1 call``, ``4 calls``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _figure(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def cut(text: str) -> str:
    """``text``, or its beginning with an ellipsis."""
    shown, more = trimmed(text, _PART)
    return f"{shown}{more and '…'}"
