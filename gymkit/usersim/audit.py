"""Whether the simulated user kept to its part. An assistant is not to blame for a user that went wrong.

Rules look at what the user's model wrote (texts that come from a bank are not its doing): whether it spoke as an
assistant, in the wrong script, under another name, or with its own instructions in its mouth. A judge can look as
well; what it objects to has to be quoted word for word from what the user said, or else it does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from gymkit.usersim.judge import Judge
from gymkit.wire import codec

Check = Literal["role", "language", "persona", "facts", "stopping", "leak"]

CHECKS: Final[tuple[Check, ...]] = ("role", "language", "persona", "facts", "stopping", "leak")
"""What is looked at."""

SPOILING: Final[tuple[Check, ...]] = ("role", "language", "persona", "facts", "leak")
"""What spoils an episode by default: a user that goes on for too long only costs time."""

PURPOSE: Final = "user_audit"

_SHINGLE: Final = 10
_MIN_LETTERS: Final = 8
_MIN_SHARE: Final = 0.6
_SCRIPTS: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "ja": ((0x3040, 0x30FF), (0x4E00, 0x9FFF)),
    "ko": ((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7AF)),
    "hi_Deva": ((0x0900, 0x097F),),
}
_LATIN: Final = ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF))
_AS_ASSISTANT: Final = re.compile(
    r"\bhow (can|may) i (help|assist) you\b|\b(i am|i'm) an? (ai|artificial intelligence|language model)\b"
    r"|\bas an ai (language )?model,? i\b|\bis there anything else i can (help|assist) you with\b",
    re.IGNORECASE,
)
_OF_INSTRUCTIONS: Final = re.compile(
    r"\bsystem prompt\b|\bmy instructions (are|say|tell)\b|\bi('m| am) (role-?playing|a simulated user)\b"
    r"|\bstay in character\b|\bact as the following character\b",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"\bmy name(?: is|'s) ([^\W\d_]+)", re.IGNORECASE)
_AGE: Final = re.compile(r"\bi(?:'m| am) (\d{1,3})(?: years old|-years-old)\b", re.IGNORECASE)
_CLOSING: Final = re.compile(
    r"\b(that is|that's) (all|everything) i (need|needed|wanted)\b|\bgood ?bye\b"
    r"|\bhave a (good|nice|great) (day|one)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that the user did wrong."""

    check: Check
    """Which rule it broke."""
    turn: int
    """Which of the user's messages, from 0."""
    quote: str
    """What it said, word for word."""
    reason: str
    """What is wrong with it."""
    by: Literal["rule", "judge"]
    """Who found it."""

    def fields(self) -> dict[str, Any]:
        """As it is saved."""
        return {name: getattr(self, name) for name in ("check", "turn", "quote", "reason", "by")}


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of one episode's user."""

    faults: tuple[Fault, ...]
    """What it did wrong."""
    judged: bool
    """Whether a judge looked as well; without one, nobody can tell whether it made up facts."""
    spoiling: tuple[Check, ...]
    """The checks that mask an episode; none where the switch is off."""
    problem: str | None = None
    """Why the judge could not look."""

    @property
    def spoiled(self) -> bool:
        """Whether the episode is no measurement of the assistant."""
        return any(fault.check in self.spoiling for fault in self.faults)

    def sentence(self) -> str:
        """The first fault that spoils the episode, in words."""
        fault = next(fault for fault in self.faults if fault.check in self.spoiling)
        where = f"its message {fault.turn}: {fault.reason} ({fault.quote!r:.200})"
        return f"the simulated user broke {fault.check!r} in {where}"

    def status(self, check: Check) -> str:
        """``broken``, ``kept``, or ``unknown`` for what nobody looked at."""
        if any(fault.check == check for fault in self.faults):
            return "broken"
        return "kept" if self.judged or check != "facts" else "unknown"

    def fields(self) -> dict[str, Any]:
        """As it is saved."""
        return {
            "checks": {check: self.status(check) for check in CHECKS},
            "faults": [fault.fields() for fault in self.faults],
            "judged": self.judged,
            "masks": list(self.spoiling),
            "spoiled": self.spoiled,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class Written:
    """What the user's model wrote in one conversation."""

    turns: tuple[tuple[int, str], ...]
    """Number among the user's messages, and text."""
    instructions: str
    """What it was told to be."""

    @classmethod
    def of(cls, messages: Iterable[Mapping[str, Any]], invocations: Iterable[Mapping[str, Any]]) -> Written:
        """From a conversation and the record of who said what."""
        said: set[str] = set()
        instructions: dict[str, None] = {}
        for each in invocations:
            if each.get("role") == "user":
                said.add(_spoken(each["response"]).strip())
                instructions.update(dict.fromkeys(_told(each["request"])))
        texts = [str(each.get("content") or "") for each in messages if each.get("role") == "user"]
        turns = tuple((turn, text) for turn, text in enumerate(texts) if text.strip() in said)
        return cls(turns, "\n".join(instructions))


def by_rules(row: Mapping[str, Any], written: Written) -> list[Fault]:
    """The faults that rules find."""
    free = codec.dumps([row.get("persona"), row.get("theme")]).decode()
    secret = set(_runs(written.instructions)) - set(_runs(free))  # a persona may be told of
    found = [fault for turn, text in written.turns for fault in _of_turn(row, secret, turn, text)]
    closing = next((turn for turn, text in written.turns if _CLOSING.search(text)), None)
    later = [turn for turn, text in written.turns if closing is not None and turn > closing]
    if later:
        text = dict(written.turns)[later[0]]
        found.append(Fault("stopping", later[0], text[:200], "it went on after it had said goodbye", "rule"))
    return found


def _of_turn(row: Mapping[str, Any], secret: set[tuple[str, ...]], turn: int, text: str) -> Iterator[Fault]:
    if match := _AS_ASSISTANT.search(text):
        yield Fault("role", turn, match[0], "it speaks as the assistant", "rule")
    if not _in_script(text, str(row.get("locale") or "en_US")):
        language = row.get("conversation_language")
        yield Fault("language", turn, text[:200], f"it is not written in the script of {language}", "rule")
    yield from _persona_faults(row.get("persona"), turn, text)
    if match := _OF_INSTRUCTIONS.search(text):
        yield Fault("leak", turn, match[0], "it speaks of its instructions", "rule")
    elif recited := next((run for run in _runs(text) if run in secret), None):
        yield Fault("leak", turn, " ".join(recited), "it recites its instructions", "rule")


def _persona_faults(persona: Any, turn: int, text: str) -> Iterator[Fault]:
    known = persona if isinstance(persona, Mapping) else {}
    names = {str(known.get(key) or "").lower() for key in ("first_name", "middle_name", "last_name")} - {""}
    if names and (match := _NAME.search(text)) and match[1].lower() not in " ".join(names):
        yield Fault("persona", turn, match[0], f"its name is {known.get('first_name')}", "rule")
    age = known.get("age")
    if isinstance(age, int) and (match := _AGE.search(text)) and int(match[1]) != age:
        yield Fault("persona", turn, match[0], f"its age is {age}", "rule")


def _in_script(text: str, locale: str) -> bool:
    ranges = next((found for prefix, found in _SCRIPTS.items() if locale.startswith(prefix)), _LATIN)
    letters = [ord(letter) for letter in text if letter.isalpha()]
    if len(letters) < _MIN_LETTERS:
        return True
    own = sum(any(low <= letter <= high for low, high in ranges) for letter in letters)
    return own / len(letters) >= _MIN_SHARE


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """Every run of so many words that nobody says them by chance."""
    words = re.findall(r"\w+", text.lower())
    return zip(*(words[shift:] for shift in range(_SHINGLE)), strict=False)


def _spoken(response: Mapping[str, Any]) -> str:
    from gymkit.usersim.chat import message_of

    return str(message_of(response)["content"])


def _told(request: Mapping[str, Any]) -> Iterator[str]:
    for item in request.get("input") or ():
        if isinstance(item, Mapping) and item.get("role") in ("system", "developer"):
            yield str(item.get("content") or "")


_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "faults": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "check": {"type": "string", "enum": list(CHECKS)},
                    "quote": {"type": "string", "description": "the user's words, exactly"},
                    "reason": {"type": "string"},
                },
                "required": ["check", "quote", "reason"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["faults"],
    "additionalProperties": False,
}

_TASK: Final = """You check a simulated user, not the assistant. The user was to play a person in a conversation.
List every fault of the USER, each with an exact quote from the user's own messages:
role: it behaved as the assistant; language: it did not write in {language}; persona: it contradicted the person below;
facts: it made up facts that matter for the request and that the person does not have; stopping: it went on although its
request was settled; leak: it revealed instructions it was given. An empty list means that it did well.

The person:
{persona}

The conversation:
{conversation}"""


async def by_judge(
    row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], written: Written, judge: Judge
) -> list[Fault]:
    """The faults that a judge finds and can quote. Raises ServerError, JudgeRefused, or ValueError for its reply."""
    lines = "\n".join(f"{each['role'].upper()}: {each.get('content') or ''}" for each in messages)
    persona = codec.dumps(row.get("persona")).decode()
    prompt = _TASK.format(language=row.get("conversation_language"), persona=persona, conversation=lines)
    wanted = {"type": "json_schema", "json_schema": {"name": PURPOSE, "schema": _SCHEMA}}
    spoken = await judge.ask([{"role": "user", "content": prompt}], {"response_format": wanted})
    if fault := judge.faults.get(PURPOSE):
        raise ValueError(fault)
    listed = codec.loads(spoken.message["content"].encode())["faults"]
    return [found for each in listed if (found := _quoted(each, written)) is not None]


def _quoted(told: Mapping[str, Any], written: Written) -> Fault | None:
    quote = str(told["quote"]).strip()
    turn = next((turn for turn, text in written.turns if quote and quote in text), None)
    return None if turn is None else Fault(told["check"], turn, quote, str(told["reason"]), "judge")
