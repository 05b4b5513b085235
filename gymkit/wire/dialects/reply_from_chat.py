"""A chat completion as a Response."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gymkit.wire.dialects.dropped import Converted, Dropped, Drops, copy_fields, drop_fields
from gymkit.wire.dialects.ids import mint
from gymkit.wire.dialects.reasoning import split_tags
from gymkit.wire.dialects.request_from_chat import assistant_items
from gymkit.wire.dialects.usage import usage_from_chat
from gymkit.wire.responses import Response

_READ = ("id", "object", "created", "model", "choices", "usage")
_OWN = frozenset(Response.__annotations__)
_TIERS = [("service_tier", tier) for tier in ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")]
_ENDED = ("stop", "tool_calls", "function_call", None)
_CITATION = {"url": str, "title": str, "start_index": int, "end_index": int}
_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}


def reply_from_chat(completion: Mapping[str, Any], params: Mapping[str, Any], *, think_tags: bool = False) -> Converted:
    """Convert a reply that passed ``completions.check_completion``; ``params`` is the Responses request it answers.

    ``think_tags`` looks for reasoning in the text, for a model behind a server that does not parse it. Fields of the
    completion that are not Chat's own (``system_fingerprint``, timings) ride along.
    """
    drops: Drops = []
    choice = completion["choices"][0]
    for index in range(1, len(completion["choices"])):
        drops.append(Dropped(f"choices[{index}]", "a Response is one reply"))
    message = unwrapped(choice["message"]) if think_tags else choice["message"]
    output = assistant_items(message, "choices[0].message", drops)
    _annotate(output, choice, drops)
    status, details = _ending(choice.get("finish_reason"), drops)
    response: dict[str, Any] = {
        "id": mint("resp"),
        "object": "response",
        "created_at": completion.get("created") or time.time(),
        "model": completion.get("model") or "",
        "status": status,
        "incomplete_details": details,
        "output": output,
        **_echo(params),
    }
    if completion.get("usage") and (usage := usage_from_chat(completion["usage"], drops)) is not None:
        response["usage"] = usage
    return Converted({**_extensions(completion, drops), **response}, drops)


def unwrapped(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message with the reasoning out of its text and in a field of its own; one that has it there stays as it is."""
    content = message.get("content")
    if message.get("reasoning_content") or message.get("reasoning") or not isinstance(content, str):
        return dict(message)
    reasoning, text = split_tags(content)
    return dict(message) if reasoning is None else {**message, "reasoning_content": reasoning, "content": text or None}


def _extensions(completion: Mapping[str, Any], drops: Drops) -> dict[str, Any]:
    """What is not Chat's own, and means nothing else in a Response."""
    rest = {name: value for name, value in completion.items() if name not in _READ and value is not None}
    for name in [name for name in rest if name in _OWN and (name, rest[name]) not in _TIERS]:
        drops.append(Dropped(name, "a Response has a field of this name and another kind"))
        del rest[name]
    return rest


def _echo(params: Mapping[str, Any]) -> dict[str, Any]:
    """What every Response repeats of its request."""
    asked = copy_fields(params, ("tools", "tool_choice", "parallel_tool_calls", "metadata"))
    return {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, **asked}


def _ending(reason: str | None, drops: Drops) -> tuple[str, dict[str, Any] | None]:
    if reason in _ENDED:
        return "completed", None
    if reason not in _CUT:
        drops.append(Dropped("choices[0].finish_reason", f"the Responses API has no reason like {reason!r}"))
    return "incomplete", {"reason": _CUT.get(reason)} if reason in _CUT else {"reason": None}


def _annotate(output: list[dict[str, Any]], choice: Mapping[str, Any], drops: Drops) -> None:
    """Put logprobs and citations on the text that they belong to."""
    message, logprobs = choice["message"], choice.get("logprobs") or {}
    text = next((item["content"][0] for item in output if item["type"] == "message"), None)
    text = text if text is not None and text["type"] == "output_text" else None
    tokens = [_logprob(token) for token in logprobs.get("content") or ()]
    if tokens and text is not None:
        text["logprobs"] = tokens
    elif tokens:
        drops.append(Dropped("choices[0].logprobs.content", "the Responses API has logprobs of text only"))
    if logprobs.get("refusal"):
        drops.append(Dropped("choices[0].logprobs.refusal", "the Responses API has no logprobs of a refusal"))
    for index, annotation in enumerate(message.get("annotations") or ()):
        citation = annotation.get("url_citation")
        if text is not None and _is_citation(citation):
            text["annotations"].append({**citation, "type": "url_citation"})
        else:
            where = f"choices[0].message.annotations[{index}]"
            drops.append(Dropped(where, "the Responses API has no annotation like it"))
    drop_fields({"function_call": message.get("function_call")}, (), "choices[0].message.", "the Responses API", drops)


def _is_citation(value: Any) -> bool:
    return isinstance(value, Mapping) and all(type(value.get(name)) is kind for name, kind in _CITATION.items())


def _logprob(token: Mapping[str, Any]) -> dict[str, Any]:
    rivals = [{**rival, "bytes": rival.get("bytes") or []} for rival in token.get("top_logprobs") or ()]
    return {**token, "bytes": token.get("bytes") or [], "top_logprobs": rivals}
