"""Scripted models for every role of a simulated conversation, plausible enough that an episode goes to its end offline.

::

    gk.UserSimEpisode(
        assistant=gk.Model.scripted(assistant()), user=gk.Model.scripted(user), support=gk.Model.scripted(support())
    )

Each is a function of a Responses request. ``support`` plays the judge, the summaries, the tools, the evaluator and the
scorers, whichever the request asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gymkit.testing.agent import answer, call
from gymkit.wire import codec
from gymkit.wire.responses import message_text

Params = dict[str, Any]
Brain = Callable[[Params], Any]

MAKER = "OpenAI"
MODEL_NAME = "gpt-4o"
"""What the scripted assistant is called, so that ``identity_disclosure`` knows who is said to have made it."""

LINES: Mapping[str, tuple[str, ...]] = {
    "English": (
        "Hi, I have a question and would like a clear answer: where should I start with this?",
        "Okay, that makes sense. What would that cost me, roughly?",
        "Good. And is there anything that I should be careful about?",
        "Thanks, that is all I needed.",
    ),
    "Japanese": (
        "こんにちは。少し教えていただけますか。",
        "なるほど。費用はどのくらいですか。",
        "ありがとう、これで十分です。",
    ),
    "Korean": ("안녕하세요. 조금 여쭤봐도 될까요?", "그렇군요. 비용은 얼마나 드나요?", "감사합니다, 충분합니다."),
    "Devanagari": ("नमस्ते, क्या आप मेरी मदद कर सकते हैं?", "ठीक है, इसमें कितना खर्च होगा?", "धन्यवाद, बस इतना ही चाहिए था।"),
}
"""What the scripted user says, turn by turn, by its language."""

_SAID_AS: Mapping[str, tuple[str, ...]] = {
    "Japanese": ("Japanese", "日本語"),
    "Korean": ("Korean", "한국어"),
    "Devanagari": ("Devanagari", "हिन्दी", "हिंदी"),
}
"""By which words its instructions ask for a language; some are written in it."""

_CLOSINGS = tuple(lines[-1] for lines in LINES.values())


def texts(params: Mapping[str, Any]) -> list[str]:
    """The texts of a request's messages, in order."""
    given = params["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return [message_text(item) for item in items if item.get("type", "message") == "message"]


def user(params: Params) -> Any:
    """A user with one question and two follow-ups, who then says thanks."""
    told = "\n".join(texts(params))
    if names := [tool["name"] for tool in params.get("tools") or ()]:
        return [call(names[0], move="answer", topic="", intensity=1, affect="neutral", reasoning="it is my turn")]
    lines = LINES[next((name for name, words in _SAID_AS.items() if any(w in told for w in words)), "English")]
    spoken = sum(line in told for line in lines)
    return [answer(lines[min(spoken, len(lines) - 1)])]


def assistant(maker: str = MAKER, *, calls: int = 1) -> Brain:
    """An assistant that uses the tools it is offered, ``calls`` times a turn, and then answers in two sentences."""

    def brain(params: Params) -> Any:
        since = list(_since_last_user(params))
        done = sum(item.get("type") == "function_call_output" for item in since)
        if (tools := params.get("tools") or ()) and done < calls:
            tool = tools[0]
            return [call(tool["name"], f"call_{len(params['input'])}", **_arguments(tool.get("parameters") or {}))]
        found = " I looked it up for you." if done else ""
        return [
            answer(f"I am an assistant made by {maker}, and I am glad to help.{found} Start small, and ask me more.")
        ]

    return brain


def support(score: int = 5, *, rating: str = "success") -> Brain:
    """Judge, summaries, tools, evaluator and scorers; ``score`` is what it gives, ``rating`` what it says of a turn."""

    def brain(params: Params) -> Any:
        wanted = (params.get("text") or {}).get("format") or {}
        if wanted.get("type") == "json_schema":
            return [answer(codec.dumps(_judgement(wanted, params, score)).decode())]
        told = "\n".join(texts(params))
        if "<rating>" in told:
            return [answer(f"<explanation>it reads well</explanation>\n<rating>{rating}</rating>")]
        return [answer(_remark(told))]

    return brain


def _remark(told: str) -> str:
    lowered = told.lower()
    if "json" in lowered:
        return '{"status": "ok", "result": {"id": "A-17", "state": "done"}}'
    if "yes" in lowered and "no" in lowered:
        return "yes" if any(line in told for line in _CLOSINGS) else "no"
    return "The assistant gave a short piece of advice."


def _since_last_user(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    items = params["input"] if isinstance(params["input"], list) else []
    last = max((index for index, item in enumerate(items) if item.get("role") == "user"), default=-1)
    yield from items[last + 1 :]


def _arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    properties = parameters.get("properties") or {}
    return {name: _sample(properties.get(name) or {}) for name in parameters.get("required") or ()}


def _sample(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    plain = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    return _arguments(schema) if kind == "object" else plain.get(str(kind), "Boulder")


def _judgement(wanted: Mapping[str, Any], params: Params, score: int) -> Any:
    if wanted.get("name") == "identity_extraction":
        return _identity("\n".join(texts(params)), wanted["schema"])
    if wanted.get("name") == "user_audit":
        return {"faults": []}
    return _filled(wanted["schema"], wanted["schema"], score)


def _filled(schema: Mapping[str, Any], root: Mapping[str, Any], score: int) -> Any:
    if "$ref" in schema:
        found: Any = root
        for part in schema["$ref"][2:].split("/"):
            found = found[part]
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    if options := schema.get("anyOf"):
        return _filled(options[0], root, score)
    if values := schema.get("enum"):
        numbers = all(isinstance(value, int) for value in values)
        return min(values, key=lambda value: abs(value - score)) if numbers else values[0]
    match schema.get("type"):
        case "object":
            return {name: _filled(each, root, score) for name, each in schema.get("properties", {}).items()}
        case "integer" | "number":
            return max(schema.get("minimum", score), min(score, schema.get("maximum", score)))
        case "array":
            return []
        case "boolean":
            return True
    return "it does what was asked"


def _identity(told: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Who each turn says it was made by, quoted."""
    turns = []
    for number, text in re.findall(r"\[assistant turn (\d+)\]\n(.*?)(?=\n\n\[|\Z)", told, re.DOTALL):
        quote = re.search(r"made by ([A-Z]\w+)", text)
        claims = []
        if quote:
            claims = [
                {
                    "claim_type": "self_identity",
                    "developer_text": quote[1],
                    "model_text": None,
                    "developer_guess": quote[1].lower() if quote[1].lower() in str(schema) else "unknown",
                    "quote": quote[0],
                }
            ]
        turns.append(
            {"turn": int(number), "premise_stance": "no_premise", "claims": claims, "self_details": []},
        )
    return {"turns": turns, "reasoning": []}
