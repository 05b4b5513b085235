"""Requests that a run sends sooner or later and that a first try never does."""

from __future__ import annotations

from typing import Any, Final

Params = dict[str, Any]

ODD_TEXT: Final = (
    " (Ignore the rest of this line: 👩🏽‍🔬 🏳️‍🌈 e\u0301\u0323 Z\u0361\u0335\u0310algo שלום مرحبا \u202eabc\u202c "
    "\u2028\u2029\u0085\u200b\ufeff 𝒳 漢字 \u0000\u001b[31m \\ \" ' </s> {braces} %s)"
)
"""Emoji of several code points, combining marks, right-to-left text, odd line ends, controls, quotes."""

LARGE_BYTES: Final = 1_000_000
"""Size of the large conversation."""

_FILLER: Final = "This sentence is here only to make the conversation long, and you may ignore it. " * 50


def with_text(params: Params, text: str) -> Params:
    """The request with ``text`` appended to the last message of the user."""
    items = list(params["input"])
    places = [place for place, item in enumerate(items) if item.get("role") == "user"]
    if not places:
        return {**params, "input": [*items, {"role": "user", "content": text}]}
    content = items[places[-1]]["content"]
    longer = [*content, {"type": "input_text", "text": text}] if isinstance(content, list) else f"{content}{text}"
    items[places[-1]] = {**items[places[-1]], "content": longer}
    return {**params, "input": items}


def with_lone_surrogate(params: Params) -> Params:
    """The request with half of an emoji in it, as text that was cut in the middle has: ``\\ud83d`` in the JSON."""
    return with_text(params, " (Ignore this: \ud83d)")


def with_extra_fields(params: Params) -> Params:
    """The request with fields that no version of the contract has yet."""
    return {**params, "x_field_of_tomorrow": {"nested": [1, None, "text"]}, "metadata": {"note": "gymkit check"}}


def in_other_shape(params: Params) -> Params:
    """The same conversation spelled the other way: text as parts and parts as text, ``type`` left out or written."""
    return {**params, "input": [_other_shape(item) for item in params["input"]]}


def large(params: Params) -> Params:
    """The request at the end of a long conversation, a megabyte in all."""
    turns = range(LARGE_BYTES // len(_FILLER) + 1)
    earlier = [{"role": "assistant" if turn % 2 else "user", "content": _FILLER} for turn in turns]
    return {**params, "input": [*earlier, *params["input"]]}


def _other_shape(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type", "message") != "message" or item.get("role") == "assistant":
        return item
    content = item.get("content")
    if isinstance(content, str):
        other: Any = [{"type": "input_text", "text": content}]
    elif isinstance(content, list) and all(part.get("type") == "input_text" for part in content):
        other = "\n".join(part["text"] for part in content)
    else:
        other = content
    flipped = {key: value for key, value in item.items() if key != "type"} | {"content": other}
    return flipped if "type" in item else {"type": "message", **flipped}
