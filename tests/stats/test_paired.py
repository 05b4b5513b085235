from itertools import product

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower

from gymkit.errors import ConfigError
from gymkit.stats import (
    holm,
    mcnemar_exact,
    minimum_detectable,
    paired_difference,
    sign_flip,
    tango,
    tasks_needed,
)
from gymkit.stats.paired import DRAWS, EXACT_TASKS, PSEUDO_FLIP
from tests.stats.runs import STEADY

flips = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 60)).filter(lambda case: sum(case) > 0)
steps = st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=10)


def score_by_optimiser(wins: int, losses: int, tasks: int, difference: float) -> float:
    """Tango's statistic with the loss rate from a numerical likelihood maximum instead of the quadratic."""

    def minus_likelihood(rate: float) -> float:
        cells = np.array([rate + difference, rate, 1 - 2 * rate - difference])
        return -float(np.sum(np.array([wins, losses, tasks - wins - losses]) * np.log(np.maximum(cells, 1e-300))))

    bounds = (max(0.0, -difference) + 1e-12, (1 - difference) / 2 - 1e-12)
    rate = scipy.optimize.minimize_scalar(minus_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
    return float((wins - losses - tasks * difference) / np.sqrt(tasks * (2 * rate + difference * (1 - difference))))


@pytest.mark.parametrize(("wins", "losses", "tasks"), [(9, 4, 32), (5, 1, 20), (1, 7, 25), (30, 10, 100)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_tango_ends_where_the_score_is_the_quantile(wins: int, losses: int, tasks: int, level: float) -> None:
    found, z = tango(wins, losses, tasks, level), scipy.stats.norm.ppf(0.5 + level / 2)
    assert score_by_optimiser(wins, losses, tasks, found.low) == pytest.approx(z, abs=1e-3)
    assert score_by_optimiser(wins, losses, tasks, found.high) == pytest.approx(-z, abs=1e-3)


def test_tango_leaves_zero_out_just_when_mcnemar_without_correction_does() -> None:
    for wins, losses in product(range(12), range(12)):
        found = tango(wins, losses, 40)
        chi = mcnemar(np.array([[5, wins], [losses, 7]]), exact=False, correction=False) if wins + losses else None
        assert (not found.low <= 0 <= found.high) == (chi is not None and chi.pvalue < 0.05)


@STEADY
@given(flips)
def test_tango_holds_the_difference_and_mirrors(case: tuple[int, int, int]) -> None:
    wins, losses, _ = case
    one, two = tango(wins, losses, sum(case)), tango(losses, wins, sum(case))
    assert -1 <= one.low <= one.value <= one.high <= 1
    assert one.low < one.high
    assert (one.low, one.high) == pytest.approx((-two.high, -two.low), abs=1e-9)


def test_all_ties_still_leave_room() -> None:
    z2 = scipy.stats.norm.ppf(0.975) ** 2
    found = tango(0, 0, 20)
    assert (found.low, found.high) == pytest.approx((-z2 / (20 + z2), z2 / (20 + z2)))
    spread = paired_difference([0.0] * 20, repeats=4)
    assert spread.low < -0.02 and spread.high > 0.02


@pytest.mark.parametrize(("wins", "losses", "tasks"), [(3, 3, 5), (-1, 0, 5)])
def test_counts_that_cannot_be_are_refused(wins: int, losses: int, tasks: int) -> None:
    with pytest.raises(ConfigError, match="do not fit"):
        tango(wins, losses, tasks)


@STEADY
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_that_of_statsmodels_and_scipy(wins: int, losses: int) -> None:
    table = np.array([[5, wins], [losses, 7]])
    assert mcnemar_exact(wins, losses) == pytest.approx(min(1.0, mcnemar(table, exact=True).pvalue))
    if wins + losses:
        assert mcnemar_exact(wins, losses) == pytest.approx(scipy.stats.binomtest(wins, wins + losses).pvalue)


def test_the_same_data_that_an_unpaired_test_misses() -> None:
    """lm-evaluation-harness #3868: by eye or unpaired there is nothing, paired there is."""
    wins, losses, both, tasks = 60, 30, 500, 1000
    unpaired = scipy.stats.chi2_contingency(
        [[both + wins, tasks - both - wins], [both + losses, tasks - both - losses]]
    )
    assert unpaired.pvalue > 0.1
    assert mcnemar_exact(wins, losses) < 0.01


@STEADY
@given(steps)
def test_sign_flip_is_full_enumeration(differences: list[float]) -> None:
    data = np.array(differences)
    sums = [abs(np.dot(signs, data)) for signs in product([1, -1], repeat=len(data))]
    assert sign_flip(differences) == pytest.approx(np.mean([s >= abs(data.sum()) - 1e-9 for s in sums]))


def test_sign_flip_is_that_of_scipy() -> None:
    data = np.random.default_rng(0).normal(0.4, 1, 11)
    other = scipy.stats.permutation_test((data,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(data) == pytest.approx(other.pvalue)


def test_drawn_signs_agree_with_enumeration() -> None:
    data = np.random.default_rng(1).normal(0.35, 1, EXACT_TASKS + 5)
    exact = scipy.stats.permutation_test((data,), np.sum, permutation_type="samples", n_resamples=2**17).pvalue
    error = np.sqrt(exact * (1 - exact) / DRAWS)
    assert sign_flip(data) == pytest.approx(exact, abs=4 * error)
    assert sign_flip(data, seed=3) == pytest.approx(exact, abs=4 * error)
    assert sign_flip(data) == sign_flip(data), "the same data give the same p-value"


def test_drawn_p_values_are_never_zero_and_hold_their_level() -> None:
    assert sign_flip(np.full(200, 0.5)) == 1 / (DRAWS + 1)
    generator = np.random.default_rng(2)
    below = np.mean([sign_flip(generator.normal(0, 1, 30)) < 0.05 for _ in range(300)])
    assert below < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_tasks_that_tie_and_the_order_change_no_p_value() -> None:
    data = [0.5, -0.25, 0.75, 1.0]
    assert sign_flip(data) == sign_flip([*data[::-1], 0.0, 0.0, 1e-17])
    assert sign_flip([0.0, 0.0]) == sign_flip([]) == 1.0


def test_clusters_flip_together() -> None:
    assert sign_flip([1, 1, 1, 1, 1, 1], ["a"] * 3 + ["b"] * 3) == 0.5
    assert sign_flip([1, 1, 1, 1, 1, 1]) == 2 / 64


def test_paired_difference_is_t_with_two_imaginary_tasks() -> None:
    """By hand: weighted moments of the tasks and of two more of weight a quarter at plus and minus one rollout."""
    data, repeats = np.array([0.5, -0.25, 0.0, 0.75, 0.25]), 4
    points = np.append(data, [repeats**-0.5, -(repeats**-0.5)])
    weights = np.append(np.ones(5), [PSEUDO_FLIP, PSEUDO_FLIP])
    centre, total = np.average(points, weights=weights), weights.sum()
    half = scipy.stats.norm.ppf(0.975) * np.sqrt(weights @ (points - centre) ** 2 / total / (total - 1))
    found = paired_difference(data, repeats=repeats)
    assert (found.low, found.value, found.high) == pytest.approx((centre - half, data.mean(), centre + half))


def test_paired_difference_comes_near_t_with_many_tasks() -> None:
    data = np.random.default_rng(0).uniform(-0.5, 0.7, 2000)
    expected = scipy.stats.ttest_1samp(data, 0).confidence_interval()
    found = paired_difference(data, repeats=4)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_without_a_range_it_is_t_and_no_spread_is_no_interval() -> None:
    data = np.random.default_rng(0).normal(2, 3, 12)
    expected = scipy.stats.ttest_1samp(data, 0).confidence_interval()
    found = paired_difference(data, width=None)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert np.isnan(paired_difference([2.0, 2.0], width=None).low)
    assert np.isnan(paired_difference([], width=None).value)


@STEADY
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.floats(1, 8))
def test_paired_difference_holds_the_mean_and_mirrors(differences: list[float], repeats: float) -> None:
    one = paired_difference(differences, repeats=repeats)
    two = paired_difference([-d for d in differences], repeats=repeats)
    assert -1 <= one.low <= one.value <= one.high <= 1
    assert (one.low, one.high) == pytest.approx((-two.high, -two.low), abs=1e-9)


def test_clusters_widen_a_paired_difference() -> None:
    data = np.repeat([0.5, -0.5, 0.25, 0.0, 0.5], 10)
    apart, together = paired_difference(data), paired_difference(data, np.repeat(np.arange(5), 10))
    assert together.n == 5
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_power_is_that_of_statsmodels() -> None:
    """One-sample normal power at the smallest detectable difference is the power asked for."""
    smallest = minimum_detectable(0.05)
    assert NormalIndPower(ddof=0).power(smallest / 0.05, nobs1=1, alpha=0.05, ratio=0) == pytest.approx(0.8, abs=1e-4)


def test_tasks_needed_repeats_the_example_of_miller() -> None:
    """969 questions for 3 points: variance 1/9 of the difference, 80 % power."""
    assert tasks_needed(0.03, np.sqrt(1 / 9 / 100), 100) == 969
    assert tasks_needed(0.0, 0.1, 100) == float("inf")
    assert tasks_needed(-0.03, np.sqrt(1 / 9 / 100), 100) == 969


@pytest.mark.parametrize("p_values", [[0.2], [0.01, 0.04, 0.03], [0.5, 0.5, 0.001, 0.9], [0.0, 1.0, 0.6, 0.02, 0.02]])
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


def test_holm_does_not_count_what_was_not_tested() -> None:
    found = holm([0.01, float("nan"), 0.04])
    assert found[0] == 0.02 and np.isnan(found[1]) and found[2] == 0.04
    assert holm([]) == []
