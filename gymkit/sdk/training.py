"""What a run has to offer a trainer: samples of the policy's own tokens, and why the other rollouts have none."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gymkit.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    import pandas as pd


class Training:
    """The samples of a run; ``rollouts.to_training()`` returns it.

    A trainer's own names differ from these; what TRL 1.16 calls them:

    - SFT (``DataCollatorForLanguageModeling``): ``input_ids`` is the prompt and then the completion, ``labels`` the
      same with -100 wherever the policy did not write, the whole prompt included.
    - GRPO (what a ``rollout_func`` returns): ``prompt_ids``, ``completion_ids``, ``logprobs``, and ``completion_mask``
      as ``env_mask``; ``group`` tells which rewards to compare.
    """

    def __init__(self, frame: pd.DataFrame, refused: pd.DataFrame) -> None:
        self.frame = frame
        """One row per policy sample: ``task_index``, ``rollout_index``, ``attempt``, ``sample``, ``group`` (Int64, the
        task), ``prompt_token_ids``, ``completion_token_ids`` (arrays, int64), ``logprobs`` (float64, natural logarithm,
        0 where the mask is 0), ``completion_mask`` (int8, 1: the policy wrote the token), ``reward`` (Float64)."""
        self.refused = refused
        """One row per rollout without samples: ``task_index``, ``rollout_index``, ``attempt``, ``status``,
        ``reason``."""

    def to_dataset(self) -> Any:
        """The samples as a ``datasets.Dataset`` of Hugging Face, the columns of ``frame`` as features.

        ``pip install 'gymkit[training]'`` brings the package; torch and the trainer are yours to choose.

        Raises ConfigError when there are none, with the reasons, and MissingExtra without the package.
        """
        if self.frame.empty:
            raise ConfigError(f"there is nothing to train on: {self._reasons() or 'the run has no rollouts'}")
        if find_spec("datasets") is None:
            raise MissingExtra("datasets", "training", "A dataset")
        from datasets import Dataset, Features, Sequence, Value

        kinds = {"prompt_token_ids": "int64", "completion_token_ids": "int64", "completion_mask": "int8"}
        lists = {name: Sequence(Value(kind)) for name, kind in {**kinds, "logprobs": "float64"}.items()}
        names = ("task_index", "rollout_index", "attempt", "sample", "group")
        scalars = {**{name: Value("int64") for name in names}, "reward": Value("float64")}
        features = Features({name: lists.get(name) or scalars[name] for name in self.frame.columns})
        return Dataset.from_dict({name: self.frame[name].tolist() for name in self.frame.columns}, features=features)

    def _reasons(self) -> str:
        counts = self.refused["reason"].value_counts()
        return "; ".join(f"{count} refused: {reason}" for reason, count in counts.items())

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        rollouts = len(self.frame[["task_index", "rollout_index"]].drop_duplicates())
        tokens = int(sum(mask.sum() for mask in self.frame["completion_mask"]))
        found = f"{len(self)} samples of {rollouts} rollouts, {tokens} tokens of the policy"
        return f"<Training {found}; {self._reasons() or 'none refused'}>"
