"""A Responses request as a Chat Completions request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymkit.wire.dialects.chat_parts import to_chat
from gymkit.wire.dialects.chat_tools import choice_to_chat, flat_name, format_to_chat, tools_to_chat
from gymkit.wire.dialects.dropped import Converted, Dropped, Drops, copy_fields, drop_fields, settings_of
from gymkit.wire.dialects.reasoning import in_tags, reasoning_text
from gymkit.wire.dialects.tokens import tokens_of

SAME = (
    *("model", "temperature", "top_p", "top_logprobs", "metadata", "user", "store", "service_tier"),
    *("prompt_cache_key", "prompt_cache_retention", "safety_identifier"),
)
"""Fields that both dialects have, with one meaning."""

_READ = (
    *("input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "text"),
    *("reasoning", "include", "stream", "stream_options"),
)
_NOTHING = {"background": False, "truncation": "disabled"}
"""Values that say what Chat does anyway."""

_TEXT = {"type": "text"}
_LOGPROBS = "message.output_text.logprobs"
_THERE = "Chat Completions"


def request_to_chat(params: Mapping[str, Any], *, think_tags: bool = False) -> Converted:
    """Convert a request that passed ``responses.check_request``.

    ``think_tags`` writes earlier reasoning into the text as ``<think>…</think>``, for a model behind a server that does
    not parse reasoning; otherwise it is in ``reasoning_content``.
    """
    drops: Drops = []
    chat = {"messages": _messages(params, think_tags, drops), **copy_fields(params, SAME)}
    if params.get("max_output_tokens") is not None:
        chat["max_tokens"] = params["max_output_tokens"]  # the name that vLLM's relatives all know
    if tools := tools_to_chat(params.get("tools") or (), "tools", drops):
        chat |= {"tools": tools, **copy_fields(params, ("parallel_tool_calls",))}
        if (choice := choice_to_chat(params.get("tool_choice") or "auto", drops)) not in (None, "auto"):
            chat["tool_choice"] = choice
    _settings(params, chat, drops)
    rest = {name: value for name, value in params.items() if name not in _NOTHING or value != _NOTHING[name]}
    drop_fields(rest, {*SAME, *_READ}, "", _THERE, drops)
    return Converted(chat, drops)


def _settings(params: Mapping[str, Any], chat: dict[str, Any], drops: Drops) -> None:
    reasoning = settings_of(params, "reasoning", {"effort": str}, drops)
    text = settings_of(params, "text", {"verbosity": str, "format": dict}, drops)
    if "effort" in reasoning:
        chat["reasoning_effort"] = reasoning["effort"]
    if "verbosity" in text:
        chat["verbosity"] = text["verbosity"]
    if text.get("format", _TEXT) != _TEXT:
        chat["response_format"] = format_to_chat(text["format"])
    drop_fields(params.get("reasoning") or {}, ("effort",), "reasoning.", _THERE, drops)
    drop_fields(params.get("text") or {}, ("verbosity", "format"), "text.", _THERE, drops)
    include = params.get("include") or []
    if _LOGPROBS in include or params.get("top_logprobs"):
        chat["logprobs"] = True
    drops += [Dropped("include[]", f"{_THERE} cannot include {name}") for name in include if name != _LOGPROBS]


def _messages(params: Mapping[str, Any], think_tags: bool, drops: Drops) -> list[dict[str, Any]]:
    conversation = _Conversation(think_tags, drops)
    if params.get("instructions"):
        conversation.messages.append({"role": "system", "content": params["instructions"]})
    if isinstance(params["input"], str):
        conversation.messages.append({"role": "user", "content": params["input"]})
    else:
        for index, item in enumerate(params["input"]):
            conversation.add(item, f"input[{index}]")
    conversation.close()
    return conversation.messages


class _Turn:
    """An assistant's message under construction: Chat has one where Responses has several items."""

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self.parts: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.tokens: dict[str, Any] = {}

    def message(self, think_tags: bool) -> dict[str, Any]:
        texts = [part for part in self.parts if part["type"] != "refusal"]
        refusal = "".join(part["refusal"] for part in self.parts if part["type"] == "refusal")
        thoughts = "\n".join(self.thoughts)
        if self.thoughts and think_tags:
            opening = texts.pop(0)["text"] if texts and texts[0]["type"] == "text" else ""
            texts.insert(0, {"type": "text", "text": in_tags(thoughts) + opening})
        plain = len(texts) == 1 and texts[0]["type"] == "text"
        nothing = None if self.thoughts or self.calls or refusal else ""
        message: dict[str, Any] = {"role": "assistant", "content": texts[0]["text"] if plain else texts or nothing}
        if self.thoughts and not think_tags:
            message["reasoning_content"] = thoughts
        if refusal:
            message["refusal"] = refusal
        if self.calls:
            message["tool_calls"] = self.calls
        return {**message, **self.tokens}


class _Conversation:
    """Chat's messages, filled item by item."""

    def __init__(self, think_tags: bool, drops: Drops) -> None:
        self.messages: list[dict[str, Any]] = []
        self._think_tags = think_tags
        self._drops = drops
        self._turn: _Turn | None = None

    def add(self, item: Mapping[str, Any], path: str) -> None:
        match item.get("type") or "message":
            case "message" if item["role"] == "assistant":
                self._said(item, path)
            case "message":
                self._heard({"role": item["role"], "content": to_chat(item["content"], f"{path}.content", self._drops)})
                drop_fields({"phase": item.get("phase")}, (), f"{path}.", _THERE, self._drops)
            case "reasoning":
                self._thought(item, path)
            case "function_call":
                function = {
                    "name": flat_name(item.get("namespace"), item["name"]),
                    "arguments": item["arguments"],
                }
                self._called({"id": item["call_id"], "type": "function", "function": function}, item)
            case "custom_tool_call" if "call_id" in item:
                custom = {"name": item.get("name", ""), "input": item.get("input", "")}
                self._called({"id": item["call_id"], "type": "custom", "custom": custom}, item)
            case "function_call_output" | "custom_tool_call_output" if "call_id" in item:
                content = to_chat(item["output"], f"{path}.output", self._drops)
                self._heard({"role": "tool", "tool_call_id": item["call_id"], "content": content})
            case kind:
                self._drops.append(Dropped(path, f"{_THERE} has no item like {kind}"))

    def close(self) -> None:
        if self._turn is not None:
            self.messages.append(self._turn.message(self._think_tags))
            self._turn = None

    def _heard(self, message: dict[str, Any]) -> None:
        self.close()
        self.messages.append(message)

    def _said(self, item: Mapping[str, Any], path: str) -> None:
        turn = self._joined(path, after_text=False)
        content = to_chat(item["content"], f"{path}.content", self._drops)
        turn.parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
        turn.tokens |= tokens_of(item)
        for index, part in enumerate(item["content"] if isinstance(item["content"], list) else ()):
            extras = {name: part.get(name) or None for name in ("annotations", "logprobs")}
            drop_fields(extras, (), f"{path}.content[{index}].", "an earlier message of Chat", self._drops)
        drop_fields({"phase": item.get("phase")}, (), f"{path}.", _THERE, self._drops)

    def _thought(self, item: Mapping[str, Any], path: str) -> None:
        drop_fields({"encrypted_content": item.get("encrypted_content")}, (), f"{path}.", _THERE, self._drops)
        text = reasoning_text(item)
        if text is None and not tokens_of(item):
            return
        turn = self._joined(path, after_text=False)
        turn.thoughts += [text] if text is not None else []
        turn.tokens |= tokens_of(item)

    def _called(self, call: dict[str, Any], item: Mapping[str, Any]) -> None:
        turn = self._joined("", after_text=True)
        turn.calls.append(call)
        turn.tokens |= tokens_of(item)

    def _joined(self, path: str, *, after_text: bool) -> _Turn:
        """The message that the next item belongs to. Chat has an order within it: reasoning, text, calls."""
        turn = self._turn
        if turn is not None and turn.parts and not turn.calls and not after_text:
            self.close()
            turn = None
        elif turn is not None and turn.calls and not after_text:
            self._drops.append(Dropped(path, "Chat puts text and reasoning before the calls: its position is lost"))
        if turn is None:
            turn = self._turn = _Turn()
        return turn
