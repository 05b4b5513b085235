"""What a streaming client sends, made fit for the strict check: coding agents send fields and items of their own.

Such a client is a product with a protocol of its own version, which nobody here can correct; so what is not known is
taken off and reported, where the same request without ``stream`` would be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gymkit.wire import chat
from gymkit.wire.dialects.chat_tools import flat_name, flattened, members
from gymkit.wire.dialects.dropped import Converted, Dropped, Drops
from gymkit.wire.items import HOSTED_INPUTS
from gymkit.wire.responses import Request, message_text
from gymkit.wire.tools import HOSTED_TOOLS

_FIELDS = frozenset(Request.__annotations__)
_STREAMING = ("stream", "stream_options")
_ITEMS = HOSTED_INPUTS | {None, "message", "reasoning", "function_call", "function_call_output"}
_TOOLS = HOSTED_TOOLS | {"function"}
_TEXTS = ("input_text", "output_text", "text")

Names = dict[str, tuple[str, str]]
"""Flat name of a tool to its group and its own name."""


class Tolerated(NamedTuple):
    """A streaming client's Responses request, made fit."""

    params: dict[str, Any]
    """The request."""
    dropped: list[Dropped]
    """What was taken off."""
    groups: Names
    """The tools that were in groups: a reply names them as the client does."""


def tolerate_chat(body: Mapping[str, Any]) -> Converted:
    """A chat request without what streams and without fields that are not Chat's."""
    drops: Drops = []
    return Converted(_known(body, chat.FIELDS, drops), drops)


def tolerate_responses(body: Mapping[str, Any]) -> Tolerated:
    """A Responses request whose groups are flat and whose leading system messages are its instructions."""
    drops: Drops = []
    params = _known(body, _FIELDS, drops)
    groups = _flatten_tools(params, drops)
    if isinstance(params.get("input"), list):
        _keep_known_items(params, drops)
        _hoist_system(params)
    return Tolerated(params, drops, groups)


def regroup(response: dict[str, Any], groups: Names) -> dict[str, Any]:
    """The response with calls of grouped tools named as the client named them."""
    if not groups:
        return response
    return {**response, "output": [_regrouped(item, groups) for item in response["output"]]}


def _regrouped(item: dict[str, Any], groups: Names) -> dict[str, Any]:
    if item.get("type") != "function_call" or item.get("name") not in groups:
        return item
    namespace, name = groups[item["name"]]
    return {**item, "namespace": namespace, "name": name}


def _known(body: Mapping[str, Any], fields: frozenset[str], drops: Drops) -> dict[str, Any]:
    unknown = [name for name in body if name not in fields and name not in _STREAMING]
    drops += [Dropped(name, "it is no field of this API that is known here") for name in unknown]
    return {name: value for name, value in body.items() if name in fields and name not in _STREAMING}


def _flatten_tools(params: dict[str, Any], drops: Drops) -> Names:
    groups: Names = {}
    made: list[Any] = []
    if not isinstance(params.get("tools"), list):
        return groups  # none, or something that the check refuses
    for index, tool in enumerate(params["tools"]):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind == "namespace":
            group = str(tool.get("name") or "")
            groups |= {flat_name(group, member["name"]): (group, member["name"]) for member in members(tool)}
            made += flattened(tool)
        elif isinstance(kind, str) and kind in _TOOLS:
            made.append(tool)
        else:
            drops.append(Dropped(f"tools[{index}]", f"the tool {kind!r} is not known here"))
    params["tools"] = made
    return groups


def _keep_known_items(params: dict[str, Any], drops: Drops) -> None:
    kept = []
    for index, item in enumerate(params["input"]):
        kind = item.get("type") if isinstance(item, dict) else "message"
        if isinstance(kind, str | None) and kind in _ITEMS:
            kept.append(_flat_call(item))
        else:
            drops.append(Dropped(f"input[{index}]", f"the item {kind!r} is not known here"))
    params["input"] = kept


def _flat_call(item: Any) -> Any:
    if not isinstance(item, dict) or not item.get("namespace") or "name" not in item:
        return item
    flat = {name: value for name, value in item.items() if name != "namespace"}
    return {**flat, "name": flat_name(item["namespace"], item["name"])}


def _hoist_system(params: dict[str, Any]) -> None:
    items, texts = params["input"], [params.get("instructions") or ""]
    count = 0
    while count < len(items) and _is_system(items[count]):
        texts.append(message_text(items[count]))
        count += 1
    if count:
        params["instructions"] = "\n".join(text for text in texts if text)
        params["input"] = items[count:]


def _is_system(item: Any) -> bool:
    if not isinstance(item, dict) or item.get("role") not in ("system", "developer"):
        return False
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    return all(isinstance(part, dict) and part.get("type") in _TEXTS for part in parts)
