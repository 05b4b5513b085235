from itertools import combinations
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.stats import majority_at_k, pass_at_k, pass_hat_k
from tests.stats.runs import STEADY

tries = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@STEADY
@given(tries)
def test_both_are_the_average_over_all_subsets(case: tuple[int, int, int]) -> None:
    n, c, k = case
    subsets = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(np.mean([any(s) for s in subsets]), abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(np.mean([all(s) for s in subsets]), abs=1e-12)


@STEADY
@given(st.integers(1, 300), st.data())
def test_pass_at_k_is_the_product_that_chen_computes(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    product = 1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))
    assert pass_at_k(n, c, k) == pytest.approx(product, abs=1e-9)


@STEADY
@given(st.integers(1, 200), st.data())
def test_curves_are_monotone_bounded_and_mirror_each_other(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert 0 <= pass_hat_k(n, c, k) <= c / n <= pass_at_k(n, c, k) <= 1
    assert pass_at_k(n, c, 1) == pass_hat_k(n, c, 1) == c / n
    assert pass_hat_k(n, c, k) == pytest.approx(1 - pass_at_k(n, n - c, k), abs=1e-12)
    if k > 1:
        assert pass_at_k(n, c, k) >= pass_at_k(n, c, k - 1)
        assert pass_hat_k(n, c, k) <= pass_hat_k(n, c, k - 1)
    if c:
        assert pass_at_k(n, c, k) >= pass_at_k(n, c - 1, k)


@pytest.mark.parametrize("formula", [pass_at_k, pass_hat_k])
def test_too_few_attempts_are_undefined_even_when_all_passed(formula: object) -> None:
    """Other tools gave 1.0 here, from one surviving attempt."""
    assert isnan(formula(1, 1, 2)) and isnan(formula(0, 0, 1))  # type: ignore[operator]


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_counts_that_cannot_be_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ConfigError, match=f"c={c} passes, k={k}"):
        pass_at_k(n, c, k)


def brute_majority(answers: list[str | None], rewards: list[float], k: int) -> float:
    """Every subset, every vote, one by one."""
    worth = {a: np.mean([r for b, r in zip(answers, rewards, strict=True) if b == a]) for a in set(answers)}
    totals = []
    for subset in combinations(answers, k):
        votes = [a for a in subset if a is not None]
        most = max((votes.count(a) for a in votes), default=0)
        winners = {a for a in votes if votes.count(a) == most}
        totals.append(np.mean([worth[a] for a in winners]) if winners else 0.0)
    return float(np.mean(totals))


@STEADY
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.floats(0, 1)), min_size=1, max_size=8), st.data())
def test_majority_is_the_average_over_all_subsets(
    attempts: list[tuple[str | None, float]], data: st.DataObject
) -> None:
    answers, rewards = [a for a, _ in attempts], [r for _, r in attempts]
    k = data.draw(st.integers(1, len(attempts)))
    assert majority_at_k(answers, rewards, k) == pytest.approx(brute_majority(answers, rewards, k), abs=1e-9)


def test_majority_in_words() -> None:
    assert majority_at_k(["x", "x", "y"], [1.0, 1.0, 0.0], 3) == 1.0
    assert majority_at_k(["x", "y"], [1.0, 0.0], 2) == 0.5, "a tie is shared"
    assert majority_at_k([None, None, "x"], [0.0, 0.0, 1.0], 3) == 1.0, "who gives no answer has no vote"
    assert majority_at_k([None], [0.0], 1) == 0.0
    assert isnan(majority_at_k(["x"], [1.0], 2))


def test_majority_of_a_missing_answer_as_pandas_spells_it() -> None:
    import pandas as pd

    assert majority_at_k([pd.NA, float("nan"), "x"], [0.0, 0.0, 1.0], 3) == 1.0


def test_majority_with_many_different_answers_is_quick_and_right() -> None:
    answers = [str(i) for i in range(64)]
    rewards = [1.0] * 16 + [0.0] * 48
    assert majority_at_k(answers, rewards, 16) == pytest.approx(0.25)


def test_majority_needs_an_answer_for_each_reward() -> None:
    with pytest.raises(ConfigError, match="2 answers for 1 rewards"):
        majority_at_k(["a", "b"], [1.0], 1)
