from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.collect.outcome import Cause, Outcome, bounds_of_mean

DONE = Outcome(
    output=Path("r.jsonl"),
    run="0" * 12,
    expected=400,
    scored=400,
    masked=0,
    failed=0,
    missing=0,
    mean=0.5,
    bounds=(0.5, 0.5),
    causes=(),
    seconds=1.0,
    stopped=False,
)
DEAD = (Cause("unreachable", 3, "no connection"),)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "400 of 400 rollouts scored: mean reward 0.5"),
        (
            {"scored": 165, "failed": 235, "mean": 1.0, "bounds": (0.4125, 1.0)},
            "165 of 400 rollouts scored, 235 failed: "
            "mean reward 1 over the scored ones, between 0.4125 and 1 over all 400",
        ),
        (
            {"scored": 0, "failed": 3, "expected": 3, "mean": None, "bounds": (0.0, 1.0), "causes": DEAD},
            "0 of 3 rollouts scored, 3 failed: no mean reward. Failures: 3 unreachable, e.g. no connection",
        ),
        (
            {"scored": 1, "masked": 2, "missing": 397, "mean": 7.0, "bounds": None, "stopped": True},
            "Stopped: 1 of 400 rollouts scored, 2 masked, 397 missing: mean reward 7 over the scored ones",
        ),
    ],
)
def test_the_denominator_stands_before_the_mean(changes: dict[str, object], sentence: str) -> None:
    assert str(replace(DONE, **changes)) == sentence  # type: ignore[arg-type]


def test_masked_rollouts_are_results_and_failed_ones_are_not() -> None:
    assert DONE.complete
    assert replace(DONE, scored=399, masked=1).complete
    assert not replace(DONE, scored=399, failed=1).complete


@given(st.lists(st.floats(0, 1), max_size=20), st.integers(0, 20))
def test_the_bounds_hold_whatever_the_others_would_have_got(rewards: list[float], others: int) -> None:
    expected = len(rewards) + others
    bounds = bounds_of_mean(sum(rewards), len(rewards), expected)
    if not expected:
        assert bounds is None
        return
    assert bounds is not None
    assert bounds[0] == pytest.approx(sum([*rewards, *[0.0] * others]) / expected)
    assert bounds[1] == pytest.approx(sum([*rewards, *[1.0] * others]) / expected)
