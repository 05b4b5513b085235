"""Token ids that a model server recorded for a harness, put back on the items of its row.

A recorded reply is found in the response by what it says: its call ids, its text. All of the model's items have to be
found, each in a reply whose tokens are on record. Where that is not so, because the agent does not tell all that its
model said, the response is put together anew from the records (``rebuilt``) if that is wanted; otherwise, and where
the records have a hole, the row is masked with the reason: a trainer would learn from words that the policy did not
write.

An episode with a simulated user has no response: the assistant is the policy, and its replies are among the episode's
``invocations``. Their items get the tokens, and the row a ``response`` of the assistant's items, which is where NeMo
Gym's finaliser puts them and where trainers look. What the user, the judge and the others said is nowhere recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gymkit.collect.captured import Call
from gymkit.collect.rebuilt import Unresolved, put_in_place, rebuilt
from gymkit.errors import TooManyMasked
from gymkit.wire.dialects.tokens import MODEL_ITEMS, tokens_of
from gymkit.wire.responses import message_text

Item = dict[str, Any]

KIND = "token_capture_incomplete"
"""The failure kind of a row whose tokens cannot be rebuilt."""
METRICS = "_ng_token_capture"
"""Where a row says what became of its tokens."""
POLICY = "assistant"
"""Whose words are trained on, in an episode with a simulated user."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What is done about tokens in a run."""

    attach: bool = True
    """Whether they are put on the rows; False leaves rows as they come."""
    rebuild: bool = False
    """Whether a response that does not tell all that the model said is put together anew."""
    loose: bool = False
    """Whether a rebuilt conversation may have holes."""
    max_mask_fraction: float | None = None
    """The share of rows masked here from which on the run ends; None: no share does."""
    min_samples: int = 50
    """Rows with recorded tokens that are waited for before."""

    @classmethod
    def of(cls, agent: object, *, opaque: bool) -> TokenRules:
        """What the configuration of ``agent`` says; without one, what its kind makes sense of.

        ``opaque`` says that its responses may leave out what its model said.
        """
        configured: TokenRules | None = getattr(agent, "token_rules", None)
        return configured or cls(rebuild=opaque)


class Tokens:
    """The tokens of one run's rows."""

    def __init__(self, rules: TokenRules = TokenRules()) -> None:
        self.rules = rules
        self.rows = 0
        """Rows with recorded tokens so far."""
        self.masked = 0
        """Of these, masked here."""

    def attach(self, result: dict[str, Any], calls: Sequence[Call], *, incomplete: bool) -> None:
        """Put the recorded tokens of ``calls`` on the items of ``result``, or mask it. Rows without such calls stay.

        ``incomplete`` says that the record is known to have a hole.
        """
        wanted = [call for call in calls if call.record.get("token_capture")]
        if not wanted or not self.rules.attach:
            return
        self.rows += 1
        good = [call for call in wanted if call.succeeded and call.record.get("response_source") != "local"]
        told: dict[str, Any] = {"calls": len(wanted)}
        try:
            if incomplete:
                raise Unresolved("a model call is not on record")
            told |= self._attached(result, good)
        except Unresolved as error:
            self.masked += 1
            told |= {"attached": 0, "reason": str(error)}
            if not result.get("mask_sample"):
                result |= {"mask_sample": True, "failure_kind": KIND, "failure_reason": f"token ids: {error}"}
        result[METRICS] = told

    def check(self) -> None:
        """Raise TooManyMasked when more rows are masked than may be."""
        limit, rows = self.rules.max_mask_fraction, self.rows
        if limit is not None and rows >= self.rules.min_samples and self.masked > limit * rows:
            raise TooManyMasked(
                f"{self.masked} of {rows} rollouts with recorded tokens are masked because their tokens cannot be "
                f"rebuilt, more than max_mask_fraction={limit:g}: failure_reason on their rows says why. What was "
                "collected is on disk, and a resume goes on"
            )

    def _attached(self, result: dict[str, Any], calls: Sequence[Call]) -> dict[str, Any]:
        """The metrics of a row that has its tokens now. Raises Unresolved."""
        conversed = isinstance(result.get("usersim_result"), Mapping) and not result.get("response")
        output = _said_by_assistant(result) if conversed else _output(result)
        try:
            placed = _placed(calls, output)
        except Unresolved:
            if not self.rules.rebuild or not (conversed or isinstance(result.get("response"), dict)):
                raise
        else:
            for item, tokens in placed:
                item.update(tokens)
            if conversed and calls and self.rules.rebuild:
                result["response"] = _response(calls, output)
            return {"attached": len(placed)}
        if not calls:
            raise Unresolved("no model call went well")
        asked = result.get("responses_create_params")
        task = asked.get("input") if isinstance(asked, Mapping) else None
        records = [call.record.get("tokens") or {} for call in calls]
        items = rebuilt(records, task, loose=self.rules.loose)
        if conversed:
            result["response"] = _response(calls, items)
        else:
            put_in_place(result, items)
        return {"attached": len(calls), "rebuilt": True}


def _output(result: Mapping[str, Any]) -> list[Item]:
    response = result.get("response")
    output = response.get("output") if isinstance(response, Mapping) else None
    return output if isinstance(output, list) else []


def _said_by_assistant(result: Mapping[str, Any]) -> list[Item]:
    """The items of the assistant's replies in an episode with a simulated user, in order."""
    own = [each for each in result.get("invocations") or () if each.get("role") == POLICY]
    return [item for each in own for item in _output(each)]


def _response(calls: Sequence[Call], items: list[Item]) -> dict[str, Any]:
    """The assistant's side of an episode as one response, as NeMo Gym's finaliser makes it."""
    first = calls[0].record.get("tokens") or {}
    written = [item["generation_token_ids"] for item in items if "generation_token_ids" in item]
    usage = {"input_tokens": len(first["prompt_token_ids"]), "output_tokens": sum(map(len, written))}
    return {
        "id": f"proj-{first['rollout_id']}",
        "object": "response",
        "model": first.get("model"),
        "output": items,
        "usage": usage,
    }


def _placed(calls: Sequence[Call], output: list[Item]) -> list[tuple[Item, dict[str, Any]]]:
    """The last item of each reply, with the tokens that belong there. Raises Unresolved."""
    items = [(index, item) for index, item in enumerate(output) if item.get("type", "message") in MODEL_ITEMS]
    placed, at = [], 0
    for number, call in enumerate(calls, 1):
        tokens = tokens_of(call.record.get("tokens") or {})
        if not tokens:
            raise Unresolved(f"call {number} of {len(calls)} came without token ids")
        found = None
        for mark in _marks(call):
            found, at = _next(mark, items, at, number, len(calls))
        if found is not None:
            placed.append((found, tokens))
    rest = [index for index, item in items[at:] if item.get("type", "message") != "reasoning"]
    if rest:
        raise Unresolved(f"item {rest[0]} of the response is in no recorded reply")
    return placed


def _marks(call: Call) -> Iterator[tuple[str, str]]:
    """What to look for: the text of the message first, then the calls."""
    if call.said.text:
        yield "message", call.said.text
    for asked in call.said.tool_calls:
        yield "function_call", str(asked["call_id"])


def _next(mark: tuple[str, str], items: list[tuple[int, Item]], at: int, number: int, total: int) -> tuple[Item, int]:
    """The next item, which has to be the marked one; reasoning before it belongs to the same reply."""
    while at < len(items) and items[at][1].get("type") == "reasoning":
        at += 1
    if at == len(items):
        raise Unresolved(f"what call {number} of {total} said is not in the response")
    index, item = items[at]
    if _mark_of(item) != mark:
        raise Unresolved(f"item {index} of the response is not what call {number} of {total} said")
    return item, at + 1


def _mark_of(item: Item) -> tuple[str, str]:
    if item.get("type", "message") == "message":
        return "message", message_text(item)
    return str(item.get("type")), str(item.get("call_id"))
