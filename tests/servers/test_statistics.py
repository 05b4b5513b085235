"""pandas is the oracle: NeMo Gym computes with it, and every digit counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gymkit.servers.statistics import (
    Measured,
    across_repeats,
    columns_of,
    describe,
    integral,
    median,
    quantile,
    repeat_level,
)

numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6), st.just(math.nan))
frames = st.integers(1, 40).flatmap(
    lambda size: st.dictionaries(
        st.sampled_from(["reward", "alpha", "zeta"]), st.lists(numbers, min_size=size, max_size=size), min_size=1
    )
)


def rollouts_of(columns: dict[str, list[Any]], agent: str | None = "agent") -> list[Measured]:
    rows = zip(*columns.values(), strict=True)
    return [Measured(place, 0, agent, dict(zip(columns, row, strict=True))) for place, row in enumerate(rows)]


def described_by_pandas(columns: dict[str, list[Any]]) -> dict[str, float]:
    frame = pd.DataFrame(columns, dtype="float64")
    found = {stat: getattr(frame, stat)() for stat in ("mean", "max", "min", "median", "std")}
    if found["std"].isna().all():
        found["std"] = pd.Series(0.0, frame.columns[frame.notna().all()])
    return {f"{stat}/{name}": value for stat, series in found.items() for name, value in series.dropna().items()}


@given(frames)
@settings(deadline=None, max_examples=50)
def test_every_statistic_is_what_pandas_says_to_the_last_digit(columns: dict[str, list[Any]]) -> None:
    rollouts = rollouts_of(columns)
    assert describe(rollouts, columns_of(rollouts), whole=False) == described_by_pandas(columns)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 127, 128, 129, 1000, 20_000])
def test_long_columns_are_summed_in_the_order_that_numpy_uses(size: int) -> None:
    values = list(np.random.default_rng(size).normal(0, 1e3, size))
    rollouts = rollouts_of({"reward": values})
    assert describe(rollouts, ["reward"], whole=False) == described_by_pandas({"reward": values})


def test_extremes_of_whole_numbers_stay_whole_only_without_gaps() -> None:
    whole = rollouts_of({"reward": [1, 0], "tokens": [5, 7]})
    assert integral(whole, ["reward", "tokens"])
    assert [type(describe(whole, ["tokens"], whole=True)[f"{stat}/tokens"]) for stat in ("max", "mean")] == [int, float]
    assert not integral([*whole, Measured(2, 0, "agent", {"reward": 1})], ["reward", "tokens"])


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60), st.sampled_from([0.25, 0.5, 0.75, 0.9, 0.99]))
@settings(deadline=None, max_examples=50)
def test_quantiles_are_those_of_pandas(values: list[float], share: float) -> None:
    assert quantile(values, share) == pd.Series(values).quantile(share)
    assert median(values) == pd.Series(values).median()


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=12), min_size=2, max_size=5))
@settings(deadline=None, max_examples=50)
def test_a_repeat_is_described_over_its_tasks_with_a_t_interval(repeats: list[list[float]]) -> None:
    rollouts = [
        Measured(task, index, "agent", {"reward": value})
        for index, values in enumerate(repeats)
        for task, value in enumerate(values)
    ]
    for entry, values in zip(repeat_level(rollouts, ["reward"]), repeats, strict=True):
        series = pd.Series(values)
        assert entry["sample_count"] + entry["missing_count"] == max(map(len, repeats))
        assert entry["sem/reward"] == series.std() / len(values) ** 0.5
        assert (entry["p25/reward"], entry["p75/reward"]) == (series.quantile(0.25), series.quantile(0.75))
        if entry["sem/reward"]:
            scaled = scipy_stats.t.interval(0.95, len(values) - 1, entry["mean/reward"], entry["sem/reward"])
            assert (entry["ci_low_95/reward"], entry["ci_high_95/reward"]) == scaled


def test_equal_values_have_an_interval_of_one_point() -> None:
    rollouts = [Measured(task, index, "agent", {"reward": 0.5}) for task in range(3) for index in range(2)]
    assert all(
        entry["ci_low_95/reward"] == entry["ci_high_95/reward"] == 0.5 for entry in repeat_level(rollouts, ["reward"])
    )


def test_a_single_repeat_has_no_repeat_level_statistics() -> None:
    assert repeat_level(rollouts_of({"reward": [1.0, 0.0]}), ["reward"]) == []
    assert across_repeats([]) == {}


PAIRS = [("a", 0), ("a", 1), ("b", 2), (None, 3), (None, 4)]


def test_each_agent_has_its_own_repeats_and_one_without_a_label_has_none() -> None:
    rollouts = [Measured(task, index, agent, {"reward": 1.0}) for task in (0, 1) for agent, index in PAIRS]
    entries = repeat_level(rollouts, ["reward"])
    assert [(entry["agent_ref"]["name"], entry["_ng_rollout_index"]) for entry in entries] == [("a", 0), ("a", 1)]


def test_across_repeats_each_repeat_is_one_observation() -> None:
    rewards = {0: [1.0, 0.0, 0.5], 1: [1.0, 1.0, 0.25]}
    rollouts = [
        Measured(task, index, "agent", {"reward": value, "p25": 1.0})
        for index, values in rewards.items()
        for task, value in enumerate(values)
    ]
    found = across_repeats(repeat_level(rollouts, ["reward", "p25"]))["agent"]
    means = pd.Series([np.mean(values) for values in rewards.values()])
    assert found["mean_across_repeats/mean/reward"] == means.mean()
    assert found["std_across_repeats/mean/reward"] == means.std()
    assert found["se_across_repeats/mean/reward"] == means.std() / 2**0.5
    # A column whose name reads like a statistic is not aggregated again: NeMo Gym's rule, kept for equal files.
    assert not any(name.endswith("/p25") for name in found)


def test_of_two_values_in_different_columns_neither_has_a_deviation() -> None:
    """NeMo Gym gives 0 only to columns without gaps, so that a lone rollout reads 0 and a gap stays a gap."""
    rollouts = [Measured(0, 0, "agent", {"a": 1.0, "c": 1}), Measured(1, 0, "agent", {"b": 2.0})]
    assert not any(name.startswith("std/") for name in describe(rollouts, ["a", "b", "c"], whole=False))
    assert describe(rollouts[:1], ["a", "b", "c"], whole=False)["std/a"] == 0.0
