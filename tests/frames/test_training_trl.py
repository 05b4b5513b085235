"""Samples of the local model, as TRL's own collators and a step in torch take them.

The policy is the same file of weights that llama.cpp ran, loaded by transformers: what was recorded while sampling can
be held against what a trainer computes. Skipped where torch, TRL or the weights are not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gymkit as gk
from gymkit.errors import MissingExtra
from gymkit.models.local import require
from gymkit.sdk.training import Training

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch trl gguf")
pytest.importorskip("trl", reason="TRL is not installed: pip install trl")
pytest.importorskip("gguf", reason="gguf, with which transformers reads the weights, is not installed")
try:
    WEIGHTS = require()
except MissingExtra as missing:
    pytest.skip(str(missing), allow_module_level=True)

PAD = 2


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """Two groups of two or more samples; where a tool was called, its output stands between two replies."""
    env = gk.Env.define("skies", tasks=[{"prompt": f"What is the weather in {city}?"} for city in ("Rome", "Oslo")])

    @env.tool
    def get_weather(state: Any, city: str) -> str:
        """Get the weather of a city."""
        return "It is cold."

    @env.verify
    def brief(state: Any, task: Any, response: Any) -> float:
        return 1 / len(str(response["output"]))

    agent = gk.SimpleAgent(gk.Model.local(token_ids=True), max_steps=2, concurrency=4)
    output = tmp_path_factory.mktemp("trl") / "rollouts.jsonl"
    rollouts = env.rollouts(agent, repeats=2, params={"max_output_tokens": 32}, output=output, progress=False)
    return rollouts.to_training()


@pytest.fixture(scope="module")
def policy() -> Iterator[Any]:
    """The weights, of which the last layer learns. One thread: on a busy machine two are slower."""
    from transformers import LlamaForCausalLM

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model = LlamaForCausalLM.from_pretrained(WEIGHTS.parent, gguf_file=WEIGHTS.name, dtype=torch.float32)
    model.requires_grad_(False)
    model.model.layers[-1].requires_grad_(True)
    yield model
    torch.set_num_threads(threads)


def labelled(sample: dict[str, Any]) -> dict[str, Any]:
    """What TRL's SFT side calls a sample: all ids, and a label where the policy wrote."""
    prompt, completion, mask = (sample[n] for n in ("prompt_token_ids", "completion_token_ids", "completion_mask"))
    labels = [token if own else -100 for token, own in zip(completion, mask, strict=True)]
    return {"input_ids": prompt + completion, "labels": [-100] * len(prompt) + labels}


def collated(training: Training) -> dict[str, Any]:
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    batch: dict[str, Any] = DataCollatorForLanguageModeling(pad_token_id=PAD)(
        [labelled(sample) for sample in training.to_dataset()]
    )
    return batch


def advantages(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Each reward against its group's, in the group's standard deviations."""
    groups = frame.groupby("group")["reward"]
    spread = groups.transform(lambda rewards: rewards.std(ddof=0)) + 1e-4
    return ((frame["reward"] - groups.transform("mean")) / spread).to_numpy(float)


def recorded(training: Training, batch: dict[str, Any]) -> Any:
    """The recorded logprobs, in the places of the batch's labels from ``start`` on."""
    placed = np.zeros(batch["labels"].shape)
    for row, (_, sample) in enumerate(training.frame.iterrows()):
        read, written = len(sample["prompt_token_ids"]), len(sample["logprobs"])
        placed[row, read : read + written] = sample["logprobs"]
    return torch.tensor(placed[:, start(batch) :], dtype=torch.float32)


def logits(policy: Any, batch: dict[str, Any]) -> Any:
    """What the policy makes of each token from ``start`` on."""
    kept = batch["labels"].shape[1] - start(batch) + 1
    return policy(batch["input_ids"], batch["attention_mask"], logits_to_keep=kept).logits[:, :-1]


def start(batch: dict[str, Any]) -> int:
    """Where the first completion begins."""
    return int((batch["labels"] != -100).any(dim=0).nonzero()[0])


def logprobs(logits: Any, batch: dict[str, Any]) -> Any:
    ids = batch["input_ids"][:, start(batch) :, None]
    return torch.log_softmax(logits, -1).gather(2, ids)[:, :, 0]


def surrogate(logits: Any, batch: dict[str, Any], old: Any, gains: Any) -> Any:
    """The loss of PPO and GRPO: the lesser of ratio x advantage and its clipped self, over the policy's tokens."""
    own = batch["labels"][:, start(batch) :] != -100
    ratio = torch.exp(logprobs(logits, batch) - old)
    each = -torch.minimum(ratio * gains[:, None], ratio.clamp(0.8, 1.2) * gains[:, None])
    return (each * own).sum() / own.sum()


def test_trls_collator_has_a_label_on_each_token_of_the_policy_and_on_no_other(training: Training) -> None:
    frame, batch = training.frame, collated(training)
    assert len(frame) >= 4
    assert training.refused.empty
    lengths = [len(row["prompt_token_ids"]) + len(row["completion_token_ids"]) for _, row in frame.iterrows()]
    assert batch["input_ids"].shape == batch["labels"].shape == (len(frame), max(lengths))
    assert batch["attention_mask"].sum(dim=1).tolist() == lengths
    for ids, labels, (_, row) in zip(batch["input_ids"], batch["labels"], frame.iterrows(), strict=True):
        own = row["completion_token_ids"][row["completion_mask"] == 1]
        assert labels[labels != -100].tolist() == own.tolist()
        assert torch.equal(ids[labels != -100], labels[labels != -100])


@pytest.mark.filterwarnings("ignore:You are importing from 'trl.experimental'")
def test_trls_collator_of_rollouts_pairs_each_token_with_its_logprob_and_advantage(training: Training) -> None:
    """The collator of asynchronous GRPO, which packs samples that begin alike: its tokens are the samples'."""
    trainer = pytest.importorskip("trl.experimental.async_grpo.async_grpo_trainer", exc_type=ImportError)
    row, frame = trainer.TreeRow(), training.frame
    for (_, sample), advantage in zip(frame.iterrows(), advantages(frame), strict=True):
        read = np.zeros(len(sample["prompt_token_ids"]))
        row.add(
            {
                "input_ids": np.concatenate([sample["prompt_token_ids"], sample["completion_token_ids"]]),
                "completion_mask": np.concatenate([read, sample["completion_mask"]]).astype(int),
                "old_log_probs": np.concatenate([read, sample["logprobs"]]),
                "advantage": float(advantage),
                "group_id": int(sample["group"]),
                "metrics": {"reward": float(sample["reward"])},
            }
        )
    collator = trainer.DataCollatorForRollout(pad_token_id=PAD)
    batch = collator([[row]])
    masks, sampled = (np.concatenate(frame[name].tolist()) for name in ("completion_mask", "logprobs"))
    assert collator.groups_trained == {0, 1}
    assert np.allclose(batch["old_log_probs"][0], sampled[masks == 1])
    counts = [int(mask.sum()) for mask in frame["completion_mask"]]
    assert np.allclose(batch["advantages"][0], np.repeat(advantages(frame), counts))
    written = np.concatenate(frame["completion_token_ids"].tolist())[masks == 1]
    assert batch["shift_labels"][0][batch["token_index"][0]].tolist() == written.tolist()


def test_recorded_logprobs_are_those_of_the_same_weights_in_torch(training: Training, policy: Any) -> None:
    """llama.cpp rounds activations to 8 bits, so within a tenth or two; a token further on they are far off."""
    batch = collated(training)
    own = batch["labels"][:, start(batch) :] != -100
    with torch.no_grad():
        new = logprobs(logits(policy, batch), batch)[own]
    old = recorded(training, batch)[own]
    apart = (new - old).abs()
    assert float(apart.mean()) < 0.2
    assert float(apart.quantile(0.99)) < 1.5
    assert float((new[1:] - old[:-1]).abs().mean()) > 5 * float(apart.mean())


def test_a_step_learns_from_the_policys_tokens_alone(training: Training, policy: Any) -> None:
    """Clipped importance ratios times advantages by group, as in GRPO; one step of SGD makes the loss less."""
    batch, gains = collated(training), torch.tensor(advantages(training.frame), dtype=torch.float32)
    own, old = batch["labels"][:, start(batch) :] != -100, recorded(training, batch)
    assert float(gains.abs().max()) > 0
    optimizer = torch.optim.SGD([each for each in policy.parameters() if each.requires_grad], lr=1e-3)
    before = logits(policy, batch)
    before.retain_grad()
    loss = surrogate(before, batch, old, gains)
    loss.backward()
    assert torch.isfinite(loss)
    learned = before.grad.abs().sum(dim=-1) > 0
    assert not learned[~own].any()
    assert learned[own & (gains[:, None] != 0)].float().mean() > 0.5  # where the ratio is clipped there is none
    optimizer.step()
    with torch.no_grad():
        assert float(surrogate(logits(policy, batch), batch, old, gains)) < loss.item()


@pytest.mark.filterwarnings("ignore:You are using 'rollout_func'", "ignore::FutureWarning")
def test_trls_grpo_trainer_takes_a_step_on_them(training: Training, tmp_path: Path) -> None:
    """Under the names of ``rollout_func``; on a tiny model, for the trainer reads no more than the samples."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    frame = training.frame[training.frame["sample"] == 0]
    names = {"prompt_ids": "prompt_token_ids", "completion_ids": "completion_token_ids", "logprobs": "logprobs"}
    given = {ours: frame[name].map(list).tolist() for ours, name in {**names, "env_mask": "completion_mask"}.items()}
    options = {"num_generations": 2, "max_steps": 1, "logging_steps": 1, "max_completion_length": 256}
    model, tokenizer = tiny()
    trainer = GRPOTrainer(
        model,
        reward_funcs=lambda completions, earned, **_: earned,
        rollout_func=lambda prompts, trainer: {**given, "earned": frame["reward"].tolist()},
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": ["Rome", "Oslo"]}),
        args=GRPOConfig(str(tmp_path), per_device_train_batch_size=4, use_cpu=True, report_to="none", **options),
    )
    trainer.train()
    step = trainer.state.log_history[0]
    assert step["reward"] == pytest.approx(frame["reward"].mean())
    assert step["completions/mean_length"] == pytest.approx(frame["completion_mask"].map(sum).mean())
    assert step["grad_norm"] > 0


def tiny() -> tuple[Any, Any]:
    """A model and a tokenizer with the policy's vocabulary, and nothing else of it."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    size = 49152
    words = Tokenizer(WordLevel({str(number): number for number in range(size)}, unk_token="0"))
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=size, num_key_value_heads=2, eos_token_id=PAD, pad_token_id=PAD, **sizes)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="2", eos_token="2", unk_token="0")
    return LlamaForCausalLM(config), tokenizer
