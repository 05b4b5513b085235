import io

import numpy as np
import pandas as pd
import pytest

from gymkit.errors import ConfigError
from gymkit.stats.scores import read_scores, repeats
from tests.stats.runs import run


def read_csv(text: str, **options: object) -> dict[str, int]:
    return read_scores(pd.read_csv(io.StringIO(text)), **options).counts  # type: ignore[arg-type]


def test_the_four_ends_of_a_rollout_stay_apart() -> None:
    scores = read_scores(run([1, 0, "failed"], ["masked", "missing", 0.5]))
    assert scores.counts == {"expected": 6, "scored": 3, "masked": 1, "failed": 1, "missing": 1}
    assert scores.scored["reward"].tolist() == [1, 0, 0.5]
    assert scores.filled(1.0).tolist() == [1, 0, 1, 1, 1, 0.5]


def test_a_masked_reward_is_not_read_even_when_recorded() -> None:
    frame = run([1, 0])
    frame["status"] = ["scored", "masked"]
    assert read_scores(frame).scored["reward"].tolist() == [1]


def test_scored_without_a_reward_is_missing() -> None:
    frame = run([1, 0])
    frame.loc[1, "reward"] = pd.NA
    assert read_scores(frame).counts["missing"] == 1


def test_a_csv_of_ones_own_needs_a_task_and_a_reward() -> None:
    assert read_csv("task_index,reward\n0,1\n0,\n1,0.5\n")["missing"] == 1
    assert read_csv("question,reward\na,1\na,0\n", task="question")["scored"] == 2


@pytest.mark.parametrize("yes", ["True", "true", "1", "1.0"])
def test_a_csv_may_say_mask_in_its_own_way(yes: str) -> None:
    found = read_csv(f"task_index,reward,mask_sample\n0,1,\n1,0,{yes}\n2,0,0\n")
    assert (found["scored"], found["masked"]) == (2, 1)


def test_a_csv_with_a_failure_kind_tells_failed_from_missing() -> None:
    found = read_csv("task_index,reward,failure_kind\n0,,timeout\n1,,\n2,0,parse\n")
    assert (found["failed"], found["missing"], found["scored"]) == (1, 1, 1)


def test_booleans_are_rewards() -> None:
    scores = read_scores(pd.DataFrame({"task_index": [0, 1], "reward": [True, False]}))
    assert scores.scored["reward"].tolist() == [1, 0]


@pytest.mark.parametrize("reward", ["good", "inf", "-inf"])
def test_a_reward_that_is_no_number_is_refused_with_its_place(reward: str) -> None:
    with pytest.raises(ConfigError, match=f"{reward}.* in row 1 is not a finite number"):
        read_scores(pd.DataFrame({"task_index": [0, 1, 2], "reward": ["0.5", reward, "1"]}))


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, "nan", "NaN"])
def test_a_missing_reward_in_any_spelling_is_no_zero(gap: object) -> None:
    scores = read_scores(pd.DataFrame({"task_index": [0, 1], "reward": pd.Series([1.0, gap], dtype=object)}))
    assert scores.counts["scored"] == 1 and scores.counts["missing"] == 1


def test_a_wrong_column_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no column 'task_indx': did you mean 'task_index'"):
        read_scores(run([1]), task="task_indx")
    with pytest.raises(ConfigError, match="no column 'reward'"):
        read_scores(pd.DataFrame({"task_index": [0], "score": [1]}))


def test_two_runs_in_one_frame_are_not_averaged() -> None:
    with pytest.raises(ConfigError, match=r"rollout 0 of task_index 0 occurs more than once.*compare"):
        read_scores(pd.concat([run([1]), run([0])]))


def test_a_rollout_without_a_task_is_refused() -> None:
    with pytest.raises(ConfigError, match="'task_index' is empty in 1 rows"):
        read_scores(pd.DataFrame({"task_index": pd.array([0, None], dtype="Int64"), "reward": [1, 1]}))


def test_an_unknown_status_is_refused() -> None:
    frame = pd.DataFrame({"task_index": [0], "reward": [1], "status": ["errored"]})
    with pytest.raises(ConfigError, match="status errored: it is one of scored, masked, failed, missing"):
        read_scores(frame)


def test_a_task_lies_in_one_cluster() -> None:
    with pytest.raises(ConfigError, match="0 lies in 2 groups of 'repository'"):
        read_scores(run([1, 0]).assign(repository=["a", "b"]), cluster="repository")


@pytest.mark.parametrize(
    ("rewards", "given", "expected"),
    [([0, 1], None, (0, 1)), ([-1, 1], None, None), ([-1, 1], (-2, 2), (-2, 2)), ([], None, (0, 1))],
)
def test_the_range_is_declared_or_unknown(rewards: list[float], given: object, expected: object) -> None:
    assert read_scores(run(rewards), reward_range=given).reward_range == expected  # type: ignore[arg-type]


def test_the_index_of_the_frame_does_not_matter() -> None:
    frame = run([1, 0], [0, "failed"])
    assert read_scores(frame.set_index(pd.Index([7, 7, 7, 7]))).counts == read_scores(frame).counts


def test_reading_changes_nothing() -> None:
    frame = run([1, "masked"], [0])
    before = frame.copy(deep=True)
    read_scores(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_repeats_in_words() -> None:
    assert (repeats([4, 4]), repeats([2, 4, 3]), repeats([])) == ("4", "2–4", "0")
