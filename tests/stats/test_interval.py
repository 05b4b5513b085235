import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from gymkit.errors import ConfigError
from gymkit.stats import cluster_mean, cluster_se, effective_size, wilson
from gymkit.stats.interval import CLUSTER_T, CLUSTER_WILSON, PSEUDO_CLUSTER, WILSON
from tests.stats.runs import STEADY

unit = st.lists(st.floats(0, 1), min_size=1, max_size=40)
coins = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 1), (1, 1), (0, 20), (7, 20), (20, 20), (118, 128), (9000, 10000)]
)
def test_wilson_is_that_of_statsmodels_and_scipy(successes: int, trials: int, level: float) -> None:
    found = wilson(successes, trials, level)
    assert (found.low, found.high) == pytest.approx(proportion_confint(successes, trials, 1 - level, method="wilson"))
    other = scipy.stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((other.low, other.high))
    assert (found.value, found.n, found.method) == (successes / trials, trials, WILSON)


def test_twenty_of_twenty_is_not_certainty() -> None:
    assert str(wilson(20, 20)) == "1.00 [0.84, 1.00]"


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5), (float("nan"), 5), (1, float("nan"))])
def test_wilson_refuses_what_is_no_proportion(successes: float, trials: float) -> None:
    with pytest.raises(ConfigError, match="successes"):
        wilson(successes, trials)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_is_between_0_and_1(level: float) -> None:
    with pytest.raises(ConfigError, match=r"such as 0\.95"):
        wilson(1, 2, level)


@STEADY
@given(st.integers(1, 400), st.data())
def test_wilson_rises_with_successes_and_narrows_with_level(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials - 1))
    less, more, wide = wilson(successes, trials), wilson(successes + 1, trials), wilson(successes, trials, 0.99)
    assert 0 <= less.low <= less.value <= less.high <= 1
    assert less.low < more.low and less.high < more.high
    assert wide.low <= less.low and wide.high >= less.high


def test_cluster_se_is_the_sandwich_of_statsmodels() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 12, 70)
    values = generator.random(70) + 0.1 * labels
    fitted = sm.OLS(values, np.ones(70)).fit(cov_type="cluster", cov_kwds={"groups": labels, "use_correction": True})
    assert cluster_se(values, labels) == pytest.approx(fitted.bse[0])


def test_cluster_se_of_single_values_is_the_usual_standard_error() -> None:
    values = np.random.default_rng(0).random(25)
    assert cluster_se(values) == pytest.approx(scipy.stats.sem(values))
    assert np.isnan(cluster_se([0.3, 0.4], ["same", "same"]))


def test_repeating_every_rollout_is_no_evidence() -> None:
    """Counting rollouts instead of tasks would shrink the interval by half here."""
    values = np.random.default_rng(0).random(25)
    once, four = cluster_mean(values), cluster_mean(np.repeat(values, 4), np.repeat(np.arange(25), 4))
    assert (four.low, four.high, four.n) == pytest.approx((once.low, once.high, 25))


def test_effective_size_is_the_binomial_variance_over_the_variance_of_the_mean() -> None:
    """By hand: the moments of the clusters and of two imaginary ones of a tenth each, at 0 and at 1."""
    means = np.array([0.25, 0.5, 0.75, 1.0, 1.0, 0.0])
    points, weights = np.append(means, [0, 1]), np.append(np.ones(6), [PSEUDO_CLUSTER, PSEUDO_CLUSTER])
    centre = np.average(points, weights=weights)
    effect = np.average((points - centre) ** 2, weights=weights) / (centre * (1 - centre))
    values = np.concatenate([np.arange(4) < 4 * mean for mean in means]).astype(float)
    assert effective_size(values, np.repeat(np.arange(6), 4)) == pytest.approx(5 / effect)


def test_effective_size_lies_between_tasks_and_rollouts_where_it_should() -> None:
    alike = np.repeat(np.random.default_rng(0).integers(0, 2, 100), 4).astype(float)
    apart = np.random.default_rng(0).integers(0, 2, 400).astype(float)
    labels = np.repeat(np.arange(100), 4)
    assert effective_size(alike, labels) == pytest.approx(99)
    assert 300 < effective_size(apart, labels) < 500


def test_a_few_tasks_that_agree_by_luck_are_no_more_than_their_rollouts() -> None:
    assert effective_size([0.5, 0.5, 0.5, 0.5], ["a", "a", "b", "b"]) == 4
    assert effective_size([1.0, 0.0, 1.0], ["a", "a", "a"]) == 1


@pytest.mark.parametrize("values", [[1.0] * 8, [0.0] * 8, [0.5] * 8, [1.0], [0.0, 0.0]])
def test_equal_rewards_are_no_certainty(values: list[float]) -> None:
    found = cluster_mean(values, np.arange(len(values)) // 2)
    assert found.high - found.low > 0.1
    assert found.low <= values[0] <= found.high


def test_the_method_is_named() -> None:
    assert cluster_mean([0, 1, 1]).method == WILSON
    assert cluster_mean([0, 1, 1], ["a", "a", "b"]).method == CLUSTER_WILSON
    assert cluster_mean([0, 0.5, 1]).method == CLUSTER_WILSON
    assert cluster_mean([0, 5, 1], reward_range=None).method == CLUSTER_T


def test_cluster_t_is_that_of_scipy() -> None:
    values = np.random.default_rng(0).normal(3, 2, 15)
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    found = cluster_mean(values, reward_range=None, level=0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("values", "clusters", "why"),
    [([3.0, 4.0], ["a", "a"], "one task"), ([3.0, 3.0], None, "no spread"), ([], None, "no scored rollouts")],
)
def test_without_a_range_nothing_is_invented(values: list[float], clusters: list[str] | None, why: str) -> None:
    found = cluster_mean(values, clusters, reward_range=None)
    assert np.isnan(found.low) and np.isnan(found.high)
    assert found.method.startswith("none: ") and why in found.method


def test_a_range_moves_and_stretches_the_interval() -> None:
    values = np.random.default_rng(0).random(30)
    plain, moved = cluster_mean(values), cluster_mean(values * 20 - 10, reward_range=(-10, 10))
    assert (moved.low, moved.value, moved.high) == pytest.approx(
        [20 * x - 10 for x in (plain.low, plain.value, plain.high)]
    )


@pytest.mark.parametrize("reward_range", [(1, 0), (0, 0), (0.2, 1)])
def test_a_range_that_does_not_hold_the_rewards_is_refused(reward_range: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="reward_range"):
        cluster_mean([0.1, 0.9], reward_range=reward_range)


@STEADY
@given(unit, st.data())
def test_interval_holds_the_mean_and_stays_in_range(values: list[float], data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))
    found = cluster_mean(values, labels)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high
    assert found.n == len(set(labels))


@STEADY
@given(unit, st.data())
def test_order_and_names_do_not_matter(values: list[float], data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))
    order = data.draw(st.permutations(range(len(values))))
    one = cluster_mean(values, labels)
    two = cluster_mean([values[i] for i in order], [f"task {labels[i]}" for i in order])
    assert (one.low, one.value, one.high) == pytest.approx((two.low, two.value, two.high), abs=1e-9)


@STEADY
@given(coins)
def test_failure_is_success_seen_from_the_other_side(values: list[float]) -> None:
    labels = np.arange(len(values)) // 3
    one, two = cluster_mean(values, labels), cluster_mean(1 - np.array(values), labels)
    assert (one.low, one.high) == pytest.approx((1 - two.high, 1 - two.low))


@STEADY
@given(coins)
def test_more_tasks_of_the_same_kind_narrow_the_interval(values: list[float]) -> None:
    values = [*values, *[0.0, 1.0] * 5]  # some of both, on at least five tasks
    labels = np.arange(len(values)) // 2
    once, twice = cluster_mean(values, labels), cluster_mean(values * 2, np.append(labels, labels + 1000))
    assert twice.high - twice.low < once.high - once.low
