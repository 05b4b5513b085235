"""Training samples: the policy's own tokens, in stretches as long as the conversation went on."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gymkit
from gymkit.errors import ConfigError
from gymkit.frames.training import COLUMNS, NoSample, TokenItem, samples
from gymkit.testing.agent import call
from gymkit.testing.model import Fault


def said(prompt: list[int], written: list[int], kind: str = "message") -> TokenItem:
    return TokenItem(kind, prompt, written, [-0.5] * len(written))


OUTPUT = TokenItem("function_call_output")


def test_replies_that_go_on_are_one_sample_with_the_tools_masked() -> None:
    [sample] = samples([said([1, 2], [3, 4], "function_call"), OUTPUT, said([1, 2, 3, 4, 9, 9], [5])])
    assert sample.prompt == [1, 2]
    assert sample.completion == [3, 4, 9, 9, 5]
    assert sample.mask == [1, 1, 0, 0, 1]
    assert sample.logprobs == [-0.5, -0.5, 0.0, 0.0, -0.5]


def test_a_context_that_was_rewritten_begins_a_new_sample() -> None:
    first, second = samples([said([1, 2], [3], "function_call"), OUTPUT, said([7, 3, 9], [5])])
    assert (first.completion, second.prompt, second.completion) == ([3], [7, 3, 9], [5])


def test_a_reply_of_several_items_has_its_tokens_on_the_last() -> None:
    [sample] = samples([TokenItem("reasoning"), TokenItem("message"), said([1], [2], "function_call"), OUTPUT])
    assert sample.completion == [2]


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], "wrote nothing"),
        ([OUTPUT], "wrote nothing"),
        ([TokenItem("message")], "item 0 .message. has no token ids"),
        ([said([1], [2]), TokenItem("message")], "item 1"),
        ([TokenItem("function_call"), OUTPUT, said([1], [2])], "item 0 .function_call."),
        ([TokenItem("message", [1], [2], [])], "one number for each token"),
        ([TokenItem("message", [1], [], [])], "generation_token_ids"),
        ([TokenItem("message", [1.5], [2], [0.0])], "prompt_token_ids"),
        ([TokenItem("message", [1], [2], [None])], "numbers"),
        ([TokenItem("message", [1], [True], [0.0])], "generation_token_ids"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_with_a_reason(items: list[TokenItem], reason: str) -> None:
    with pytest.raises(NoSample, match=reason):
        samples(items)


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=4), st.lists(st.integers(0, 9), min_size=1)), min_size=1)
)
def test_every_token_of_a_conversation_is_there_once_and_in_order(turns: list[tuple[list[int], list[int]]]) -> None:
    """Each turn: what was put before the model since its last word, and what it wrote."""
    whole = list(accumulate(([1, *turns[0][0], *turns[0][1]], *(read + wrote for read, wrote in turns[1:]))))
    items = [said(end[: len(end) - len(wrote)], wrote) for end, (_, wrote) in zip(whole, turns, strict=True)]
    [sample] = samples(items)
    assert sample.prompt + sample.completion == whole[-1]
    own = [token for token, mask in zip(sample.completion, sample.mask, strict=True) if mask]
    assert own == [token for _, wrote in turns for token in wrote]
    assert len(sample.logprobs) == len(sample.mask) == len(sample.completion)


def run(tmp_path: Path, script: Any, **options: Any) -> Any:
    model = gymkit.Model.scripted(script, **options)
    output = tmp_path / "rollouts.jsonl"
    return gymkit.Env("counter").rollouts(gymkit.SimpleAgent(model), output=output, repeats=2, progress=False)


def adder(params: dict[str, Any]) -> Any:
    done = any(item.get("type") == "function_call_output" for item in params["input"])
    return "done" if done else [call("increment_counter", count=1)]


def test_a_run_becomes_samples_and_a_dataset(tmp_path: Path) -> None:
    training = run(tmp_path, adder, token_ids=True).to_training()
    assert len(training) == 10
    assert training.refused.empty
    assert training.frame["group"].tolist() == [task for task in range(5) for _ in range(2)]
    first = training.frame.iloc[0]
    own = first["completion_token_ids"][first["completion_mask"] == 1]
    assert bytes(own.astype(np.uint8).tolist()).decode().endswith("<assistant>done\n")
    dataset = training.to_dataset()
    assert dataset.column_names == [column.name for column in COLUMNS]
    assert dataset[0]["completion_token_ids"] == first["completion_token_ids"].tolist()
    assert dataset[0]["logprobs"] == first["logprobs"].tolist()


def test_a_step_of_a_trainer_takes_them(tmp_path: Path) -> None:
    """One policy gradient step in NumPy: pad, normalise rewards by group, and no gradient where the mask is 0."""
    frame = run(tmp_path, adder, token_ids=True).to_training().frame
    frame["reward"] = [float(number % 2) for number in range(len(frame))]
    width = max(map(len, frame["completion_token_ids"]))
    ids, mask, old = (
        np.stack([np.pad(row, (0, width - len(row))) for row in frame[name]])
        for name in ("completion_token_ids", "completion_mask", "logprobs")
    )
    by_group = frame.groupby("group")["reward"]
    advantage = (frame["reward"] - by_group.transform("mean")).to_numpy(float)
    logits = np.zeros((256,))
    probs = np.exp(logits) / np.exp(logits).sum()
    ratio = np.where(mask == 1, np.exp(np.log(probs[ids]) - old), 0.0)
    weight = ratio * advantage[:, None] * mask
    gradient = np.bincount(ids.ravel(), weight.ravel(), 256) - weight.sum() * probs
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0
    assert (weight[mask == 0] == 0).all()
    assert old[mask == 0].sum() == 0
    assert abs(advantage.sum()) < 1e-9


def test_rollouts_without_tokens_or_reward_are_refused(tmp_path: Path) -> None:
    def moody(params: dict[str, Any]) -> Any:
        return Fault(503, b"down") if "add 1 " in params["input"][0]["content"] else "x"

    training = run(tmp_path, moody).to_training()
    assert training.frame.empty
    assert training.frame.dtypes.tolist() == run(tmp_path, adder, token_ids=True).to_training().frame.dtypes.tolist()
    reasons = training.refused.groupby("status", observed=True)["reason"].first()
    assert "there is no reward" in reasons["failed"]
    assert "has no token ids" in reasons["scored"]
    assert "refused" in repr(training)
    with pytest.raises(ConfigError, match="has no token ids"):
        training.to_dataset()
