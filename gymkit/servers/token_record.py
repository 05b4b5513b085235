"""What a model server records of a call for training: the reply's items with its tokens, and what led up to them.

A harness that nobody can look into (a program, a service) asks under ``/training-token-capture/``; what it was told,
and what it told the model of its tools, is all that is known of its work. From these records its conversation is put
together again (``collect.rebuilt``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gymkit.servers.call import ModelCall
from gymkit.wire.dialects.reply_from_chat import reply_from_chat
from gymkit.wire.dialects.reply_from_messages import reply_from_messages
from gymkit.wire.dialects.request_from_chat import request_from_chat
from gymkit.wire.dialects.request_from_messages import request_from_messages
from gymkit.wire.dialects.tokens import MODEL_ITEMS
from gymkit.wire.responses import message_text

SCHEMA_VERSION: Final = 1

Body = Mapping[str, Any]
Item = dict[str, Any]


def token_record(call: ModelCall, params: Body, reply: Body) -> dict[str, Any]:
    """The record of ``call``, which answered the request ``params`` with ``reply``, both in its dialect.

    ``tool_outputs`` are what the request tells of tools since the model last spoke, ``follows`` what the model had
    said then (ids of calls, or the text); None for a conversation that it begins.
    """
    history, output = _READERS[call.dialect](params, reply)
    spoken, news = _split(history)
    return {
        "schema_version": SCHEMA_VERSION,
        "rollout_id": call.rollout,
        "model_call_id": call.id,
        "model": reply.get("model"),
        "response_id": reply.get("id"),
        **(call.tokens or {}),
        "output_items": output,
        "token_item_index": len(output) - 1 if output else None,
        "tool_outputs": [item for item in news if str(item.get("type")).endswith("_output")],
        "follows": marks(spoken) if spoken else None,
    }


def marks(items: Sequence[Body]) -> list[str]:
    """What tells the model's ``items`` from others: the ids of its calls, or else its text."""
    calls = [str(item["call_id"]) for item in items if str(item.get("type")).endswith("_call") and item.get("call_id")]
    return calls or ["".join(message_text(dict(item)) for item in items if _is_message(item)).strip()]


def is_models(item: Body) -> bool:
    """Whether the model wrote the item of a conversation."""
    if _is_message(item):
        return item.get("role") == "assistant"
    return item.get("type") in MODEL_ITEMS


def _is_message(item: Body) -> bool:
    return (item.get("type") or "message") == "message"


def _split(history: Sequence[Item]) -> tuple[Sequence[Item], Sequence[Item]]:
    """What the model said last, and what came after it."""
    end = len(history)
    while end and not is_models(history[end - 1]):
        end -= 1
    begin = end
    while begin and is_models(history[begin - 1]):
        begin -= 1
    return history[begin:end], history[end:]


def _responses(params: Body, reply: Body) -> tuple[list[Item], list[Item]]:
    asked = params["input"]
    return [] if isinstance(asked, str) else list(asked), list(reply["output"])


def _chat(params: Body, reply: Body) -> tuple[list[Item], list[Item]]:
    asked = request_from_chat({**params, "messages": _tail(params["messages"])}).value["input"]
    return _items(asked), reply_from_chat(reply, {}).value["output"]


def _messages(params: Body, reply: Body) -> tuple[list[Item], list[Item]]:
    asked = request_from_messages({**params, "messages": _tail(params["messages"])}).value["input"]
    return _items(asked), reply_from_messages(reply, {}).value["output"]


def _tail(messages: Sequence[Body]) -> Sequence[Body]:
    """From where the model spoke last: what comes before was news in an earlier call."""
    begin = len(messages)
    while begin and messages[begin - 1].get("role") != "assistant":
        begin -= 1
    while begin and messages[begin - 1].get("role") == "assistant":
        begin -= 1
    return messages[begin:]


def _items(asked: str | list[Item]) -> list[Item]:
    return [] if isinstance(asked, str) else asked


_READERS: Final[Mapping[str, Callable[[Body, Body], tuple[list[Item], list[Item]]]]] = {
    "responses": _responses,
    "chat": _chat,
    "messages": _messages,
}
