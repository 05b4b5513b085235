"""One row per policy sample: a stretch of tokens that the policy wrote, with what it read before, ready for a trainer.

A sample grows as long as each prompt goes on from the one before and the reply to it, token for token; what stands in
between (a tool's output, a template's marks) is part of the completion with a mask of 0. Where a prompt does not go on
(the context was cut or rewritten), a new sample begins. A rollout of which one word was not written by the policy, or
not recorded, is refused whole: half of a rollout has no reward of its own.

With a simulated user the policy is the assistant. What the user said is read, never trained on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from gymkit.frames import rewards
from gymkit.frames.assistant import ASSISTANT
from gymkit.frames.cells import integer
from gymkit.frames.column import Builder, Column
from gymkit.frames.records import Key, Records
from gymkit.frames.rows import Stamped
from gymkit.wire.dialects.tokens import MODEL_ITEMS

FAILED: Final = "assistant_model_activation_failed"
"""How an episode ends in which the assistant did not answer as it should."""

Reply = tuple[list[int], list[int], list[float]]
"""What a model read, what it wrote, and how likely that was."""


class TokenItem(msgspec.Struct, gc=False):
    """An item of which only the tokens are of interest."""

    type: Any = "message"
    """Which kind of item it is."""
    prompt_token_ids: Any = None
    """What the model read."""
    generation_token_ids: Any = None
    """What it wrote."""
    generation_log_probs: Any = None
    """How likely that was."""


class TokenResponse(msgspec.Struct, gc=False):
    """A response's tokens."""

    output: list[TokenItem] | None = None
    """The items, in order."""


class TokenTurn(msgspec.Struct, gc=False):
    """One time that a role of an episode spoke."""

    role: Any = None
    """Who."""
    response: TokenResponse | None = None
    """What came."""
    termination_reason: Any = None
    """How the conversation ended, on its last turn."""


class Asked(msgspec.Struct, gc=False):
    """What gymkit adds to a row."""

    asked: Any = None
    """How often the assistant was asked, in an episode with a simulated user."""


class TokenRow(Stamped, gc=False):
    """A result's tokens."""

    response: TokenResponse | None = None
    """The agent's side of the rollout; with a simulated user only where it was put together from recorded calls."""
    invocations: list[TokenTurn] | None = None
    """Who spoke when, in a row of simulated users."""
    gymkit: Asked | None = None
    """What gymkit adds."""


@dataclass(slots=True)
class Sample:
    """One stretch of tokens."""

    prompt: list[int]
    """What the policy read first."""
    completion: list[int] = field(default_factory=list)
    """What came after, its own words and what was put between them."""
    logprobs: list[float] = field(default_factory=list)
    """Of each token of the completion; 0 where the policy did not write it."""
    mask: list[int] = field(default_factory=list)
    """1 where the policy wrote it."""

    def goes_on(self, prompt: list[int]) -> bool:
        """Whether ``prompt`` begins with everything that is here."""
        read, total = len(self.prompt), len(self.prompt) + len(self.completion)
        return prompt[:read] == self.prompt and prompt[read:total] == self.completion

    def add(self, tokens: list[int], logprobs: Sequence[float], mask: int) -> None:
        """Append tokens."""
        self.completion += tokens
        self.logprobs += logprobs
        self.mask += [mask] * len(tokens)


class Kept(NamedTuple):
    """A sample and whose it is."""

    key: Key
    """The rollout."""
    attempt: int
    """The attempt that gave the result."""
    number: int
    """Which sample of the rollout, from 0."""
    reward: float
    """The rollout's reward."""
    it: Sample
    """The sample."""


class Refused(NamedTuple):
    """A rollout that nothing can be learned from."""

    key: Key
    """The rollout."""
    attempt: Any
    """The attempt that gave the result."""
    status: str
    """What became of the rollout."""
    reason: str
    """Why it is refused."""


class NoSample(Exception):
    """Says why a rollout has no samples."""


COLUMNS: Final[tuple[Column[Kept], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that gave the result"),
    Column("sample", "Int64", lambda it: it.number, "which sample of the rollout, from 0"),
    Column("group", "Int64", lambda it: it.key[0], "rollouts of one task are one group"),
    Column("prompt_token_ids", "object", lambda it: np.array(it.it.prompt, np.int64), "what the policy read first"),
    Column("completion_token_ids", "object", lambda it: np.array(it.it.completion, np.int64), "what came after"),
    Column("logprobs", "object", lambda it: np.array(it.it.logprobs, np.float64), "by token; 0 where not its own"),
    Column("completion_mask", "object", lambda it: np.array(it.it.mask, np.int8), "1: the policy wrote the token"),
    Column("reward", "Float64", lambda it: it.reward, "the rollout's reward"),
)
"""Arrays of one sample have one length, that of ``completion_token_ids``; logprobs are natural logarithms."""

REFUSED: Final[tuple[Column[Refused], ...]] = (
    Column("task_index", "Int64", lambda it: it.key[0], "number of the task"),
    Column("rollout_index", "Int64", lambda it: it.key[1], "number of the rollout of that task"),
    Column("attempt", "Int64", lambda it: it.attempt, "number of the attempt that counts; NA without any"),
    Column("status", "category", lambda it: it.status, "what became of the rollout", rewards.STATUSES),
    Column("reason", "string", lambda it: it.reason, "why nothing can be learned from it"),
)


def frames(records: Records, rewarded: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the samples of a run (``COLUMNS``) and the rollouts that have none (``REFUSED``), by task and rollout.

    ``rewarded`` is the run's rewards frame.
    """
    kept, refused = Builder(COLUMNS), Builder(REFUSED)
    usable: dict[Key, float] = {}
    for task, rollout, attempt, status, reward, kind in zip(
        *(rewarded[name] for name in ("task_index", "rollout_index", "attempt", "status", "reward", "failure_kind")),
        strict=True,
    ):
        key = int(task), int(rollout)
        if status == "scored":
            usable[key] = float(reward)
        else:
            why = f"it is {status}" if pd.isna(kind) else f"it is {status} ({kind})"
            refused.add(Refused(key, None if pd.isna(attempt) else int(attempt), status, f"{why}: there is no reward"))
    for key, row, place in records.results(TokenRow, usable):
        attempt = integer(row.attempt) or 0
        try:
            found = _samples(row)
        except NoSample as error:
            refused.add(Refused(key, attempt, "scored", str(error)))
            continue
        for number, sample in enumerate(found):
            kept.add(Kept(key, attempt, number, usable[key], sample), place.size)
    return kept.frame(), refused.frame().sort_values(["task_index", "rollout_index"], kind="stable", ignore_index=True)


def samples(items: Sequence[TokenItem]) -> list[Sample]:
    """The samples in a response's items. Raises NoSample."""
    return _merged(_replies(items))


def _samples(row: TokenRow) -> list[Sample]:
    if row.response is None and row.invocations is not None:
        return _merged(_assistants(row))
    return samples((row.response and row.response.output) or [])


def _assistants(row: TokenRow) -> Iterator[Reply]:
    """The tokens of each reply of the assistant. Raises NoSample, also for one that is not on the row."""
    turns = [turn for turn in row.invocations or () if turn.role == ASSISTANT]
    failed = any(turn.termination_reason == FAILED for turn in row.invocations or ())
    if failed and (row.gymkit is None or row.gymkit.asked != len(turns)):
        raise NoSample("the assistant was asked once more, and what it said then is not on the row")
    for number, turn in enumerate(turns, 1):
        try:
            replies = list(_replies((turn.response and turn.response.output) or []))
        except NoSample as error:
            raise NoSample(f"reply {number} of the assistant: {error}") from error
        if not replies:
            raise NoSample(f"reply {number} of the assistant has no item that could have token ids")
        yield from replies


def _merged(replies: Iterable[Reply]) -> list[Sample]:
    found: list[Sample] = []
    for prompt, written, logprobs in replies:
        if not found or not found[-1].goes_on(prompt):
            found.append(Sample(prompt))
        last = found[-1]
        between = prompt[len(last.prompt) + len(last.completion) :]
        last.add(between, [0.0] * len(between), 0)
        last.add(written, logprobs, 1)
    if not found:
        raise NoSample("the policy wrote nothing")
    return found


def _replies(items: Sequence[TokenItem]) -> Iterator[Reply]:
    """The tokens of each reply, which lie on its last item. Raises NoSample for a model's item in no such reply."""
    waiting: int | None = None
    for index, item in enumerate(items):
        if item.type not in MODEL_ITEMS:
            _refuse(waiting, items)
        elif item.generation_token_ids is None:
            waiting = index if waiting is None else waiting
        else:
            waiting = None
            yield _checked(index, item)
    _refuse(waiting, items)


def _refuse(waiting: int | None, items: Sequence[TokenItem]) -> None:
    if waiting is not None:
        kind = items[waiting].type
        raise NoSample(
            f"item {waiting} ({kind}) has no token ids: the policy did not write it, or nobody recorded them"
        )


def _checked(index: int, item: TokenItem) -> Reply:
    prompt, written, logprobs = item.prompt_token_ids, item.generation_token_ids, item.generation_log_probs
    for name, ids in (("prompt_token_ids", prompt), ("generation_token_ids", written)):
        if not isinstance(ids, list) or not ids or any(type(each) is not int for each in ids):
            raise NoSample(f"item {index}: {name} is not a list of token ids")
    if not isinstance(logprobs, list) or len(logprobs) != len(written):
        raise NoSample(f"item {index}: generation_log_probs does not have one number for each token")
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in logprobs):
        raise NoSample(f"item {index}: generation_log_probs holds something else than numbers")
    return prompt, written, logprobs
