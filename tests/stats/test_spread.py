import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.formula.api as smf

from gymkit.stats import spread


def scored(rewards: np.ndarray) -> pd.DataFrame:
    tasks = np.repeat(np.arange(len(rewards)), rewards.shape[1])
    return pd.DataFrame({"task": tasks, "cluster": tasks, "reward": rewards.ravel()})


def test_parts_are_the_reml_estimates_of_statsmodels_when_balanced() -> None:
    generator = np.random.default_rng(0)
    frame = scored(generator.normal(0, 0.5, (40, 1)) + generator.normal(0, 0.3, (40, 5)))
    fitted = smf.mixedlm("reward ~ 1", frame, groups=frame["task"]).fit(reml=True)
    found = spread(frame)
    assert found.sd_between_tasks**2 == pytest.approx(float(fitted.cov_re.iloc[0, 0]), rel=1e-3)
    assert found.sd_between_repeats**2 == pytest.approx(fitted.scale, rel=1e-3)
    assert found.se_other_tasks == pytest.approx(fitted.bse_fe.iloc[0], rel=1e-3)


def test_unequal_repeats_give_back_what_was_put_in() -> None:
    generator = np.random.default_rng(1)
    sizes = generator.integers(1, 8, 4000)
    tasks = np.repeat(np.arange(4000), sizes)
    rewards = generator.normal(0, 0.5, 4000)[tasks] + generator.normal(0, 0.3, len(tasks))
    found = spread(pd.DataFrame({"task": tasks, "cluster": tasks, "reward": rewards}))
    assert (found.sd_between_tasks, found.sd_between_repeats) == pytest.approx((0.5, 0.3), rel=0.05)


def test_error_on_the_same_tasks_knows_nothing_of_other_tasks() -> None:
    """Tasks that differ, repeats that do not: running again changes nothing, other tasks would."""
    found = spread(scored(np.repeat([[0.0], [1.0], [1.0], [0.0]], 3, axis=1)))
    assert (found.sd_between_repeats, found.se_same_tasks) == (0, 0)
    assert found.se_other_tasks == pytest.approx(scipy.stats.sem([0, 1, 1, 0]))


def test_a_difference_of_tasks_smaller_than_chance_is_zero_not_imaginary() -> None:
    assert spread(scored(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))).sd_between_tasks == 0


@pytest.mark.parametrize("shape", [(5, 1), (1, 1), (0, 1)])
def test_one_rollout_a_task_cannot_tell_the_two_apart(shape: tuple[int, int]) -> None:
    found = spread(scored(np.random.default_rng(0).random(shape)))
    assert np.isnan([found.sd_between_tasks, found.sd_between_repeats, found.se_same_tasks]).all()
    assert np.isnan(found.se_other_tasks) == (shape[0] < 2)


def test_one_task_says_how_repeats_vary_and_nothing_else() -> None:
    found = spread(scored(np.array([[0.0, 0.5, 1.0]])))
    assert found.sd_between_repeats == pytest.approx(0.5)
    assert np.isnan(found.sd_between_tasks) and np.isnan(found.se_other_tasks)


def test_repeats_that_are_the_same_differ_by_nothing_at_all() -> None:
    """Three times 0.7 has a mean that is not 0.7: a table once said 7e-17 for the variation of equal numbers."""
    found = spread(scored(np.repeat([[0.9], [0.7], [0.6], [0.1]], 3, axis=1)))
    assert (found.sd_between_repeats, found.se_same_tasks) == (0.0, 0.0)
