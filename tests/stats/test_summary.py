from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.stats import cluster_mean, summary, wilson
from tests.stats.runs import FRAMES, random_run, run

ends = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.sampled_from(["failed", "masked", "missing"]))
runs = st.lists(st.lists(ends, min_size=1, max_size=4), min_size=1, max_size=6)


def text(html: str) -> str:
    """What a reader sees."""
    seen: list[str] = []
    parser = HTMLParser()
    parser.handle_data = seen.append  # type: ignore[method-assign]
    parser.feed(html)
    return " ".join(seen)


def test_denominators_come_first() -> None:
    found = summary(run([1, 0, "failed"], ["masked", "missing", 1]))
    assert found.frame["metric"].tolist()[:6] == ["expected", "scored", "masked", "failed", "missing", "tasks"]
    assert found.frame["value"].tolist()[:6] == [6, 3, 1, 1, 1, 2]


def test_the_mean_is_that_of_the_reward_column() -> None:
    frame = random_run(30, 4)
    assert summary(frame)["mean"].value == pytest.approx(frame["reward"].mean())


def test_bounds_count_each_unscored_rollout_as_worst_and_best() -> None:
    """118 of 128 scored at 0.62: the bounds that the design shows."""
    rewards = [1.0] * 73 + [0.0] * 45 + ["failed"] * 6 + ["masked"] * 4
    found = summary(run(*np.array(rewards, dtype=object).reshape(32, 4).tolist()))
    assert found["mean"].value == pytest.approx(73 / 118)
    assert found["lower_bound"].value == pytest.approx(73 / 128)
    assert found["upper_bound"].value == pytest.approx(83 / 128)


def test_one_line_says_what_matters() -> None:
    tasks = [[1, 1, 1, 0]] * 16 + [[1, 0, 0, "failed"]] * 6 + [[1, 1, "masked", 0]] * 4 + [[0, 1, 0, 1]] * 6
    assert repr(summary(run(*tasks))).splitlines()[0] == (
        "mean 0.63 [0.57, 0.68] · 118 of 128 scored · 6 failed · 4 masked · 32 tasks × 4 · bounds 0.58 / 0.66"
    )


def test_a_complete_run_shows_no_bounds_and_no_notes() -> None:
    assert repr(summary(run(*[[1], [0]] * 10))) == (
        "mean 0.50 [0.30, 0.70] · 20 of 20 scored · 0 failed · 0 masked · 20 tasks × 1"
    )


def test_one_coin_a_task_is_wilson() -> None:
    found = summary(run(*[[1]] * 14, *[[0]] * 6))["mean"]
    other = wilson(14, 20)
    assert (found.low, found.high, found.n, found.method) == (other.low, other.high, 20, "Wilson")


def test_tasks_are_the_units() -> None:
    frame = random_run(20, 4)
    kept = frame[frame["status"] == "scored"]
    other = cluster_mean(kept["reward"].to_numpy(dtype=float), kept["task_index"].to_numpy())
    found = summary(frame)["mean"]
    assert (found.low, found.high, found.n) == (other.low, other.high, 20)


def test_a_cluster_column_makes_groups_the_units() -> None:
    frame = random_run(40, 2).assign(repository=lambda f: f["task_index"] // 10)
    alone, grouped = summary(frame), summary(frame, cluster="repository")
    assert grouped["mean"].n == grouped["pass@1"].n == 4
    assert grouped["mean"].value == alone["mean"].value
    assert grouped["mean"].high - grouped["mean"].low > alone["mean"].high - alone["mean"].low
    assert any("only 4 independent units" in note for note in grouped.warnings)


def test_pass_curves_by_hand() -> None:
    found = summary(run([1, 1, 0], [0, 0, 0], [1, "failed", "failed"]))
    per_task = found.tasks.set_index("task")
    assert per_task["pass@2"].tolist()[:2] == [1.0, 0.0]
    assert per_task["pass^2"].tolist()[:2] == [pytest.approx(1 / 3), 0.0]
    assert pd.isna(per_task.loc[2, "pass@2"]), "one surviving success is no pass@2 of 1"
    assert found["pass@1"].value == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert (found["pass@2"].value, found["pass@2"].n) == (0.5, 2)
    assert "pass@3" in found.frame["metric"].tolist() and "pass@4" not in found.frame["metric"].tolist()


def test_a_pass_is_a_reward_of_at_least_success() -> None:
    frame = run([0.4, 0.6], [1.0, 0.9])
    assert summary(frame)["pass@1"].value == 0.25
    assert summary(frame, success=0.6)["pass@1"].value == 0.75
    assert any("a pass is a reward of at least 1" in note for note in summary(frame).warnings)


def test_majority_needs_an_answer_column() -> None:
    frame = run([1, 1, 0], [0, 0, 1]).assign(answer=["x", "x", "y", "p", "p", "q"])
    found = summary(frame, answer="answer")
    assert found["majority@3"].value == 0.5
    assert found.tasks["majority@3"].tolist() == [1.0, 0.0]
    assert not summary(frame).frame["metric"].str.startswith("majority").any()


def test_a_failed_rollout_does_not_vote() -> None:
    frame = run([1, 0, "failed"]).assign(answer=["x", "y", "y"])
    assert summary(frame, answer="answer").tasks["majority@2"].tolist() == [0.5]


def test_variation_of_tasks_and_of_repeats_is_named_apart() -> None:
    only_tasks, only_repeats = summary(run([1, 1], [0, 0], [1, 1], [0, 0])), summary(run([1, 0], [0, 1], [1, 0]))
    assert only_tasks["sd_between_repeats"].value == 0 < only_tasks["sd_between_tasks"].value
    assert only_repeats["sd_between_tasks"].value == 0 < only_repeats["sd_between_repeats"].value
    assert only_tasks["se_same_tasks"].value == 0 < only_tasks["se_other_tasks"].value


def test_it_warns_when_the_conclusion_depends_on_the_unscored() -> None:
    """Nine errors and one success: other tools print accuracy 1.0."""
    found = summary(run([1], *[["failed"]] * 9))
    assert (found["mean"].value, found["lower_bound"].value) == (1.0, 0.1)
    assert "9 unscored rollouts can move the mean more than chance" in found.warnings[0]
    assert not any("unscored" in note for note in summary(run(*[[1], [0]] * 50, ["failed"])).warnings)


def test_it_says_which_tasks_the_mean_leaves_out() -> None:
    notes = summary(run([1, 0], ["failed", "failed"], [0, "masked"])).warnings
    assert any("1 of 3 tasks have no scored rollout" in note for note in notes)
    assert any("tasks have 0–2 scored rollouts" in note and "mean is 0.25" in note for note in notes)


def test_rewards_outside_the_unit_range_need_a_declared_one() -> None:
    frame = run([-3, 4], [1, "failed"], [2, 2])
    plain, declared = summary(frame), summary(frame, reward_range=(-5, 5))
    assert np.isnan(plain["lower_bound"].value) and plain["mean"].method == "cluster t"
    assert any("give reward_range=(lowest, highest)" in note for note in plain.warnings)
    assert "bounds NA / NA" in repr(plain)
    assert declared["lower_bound"].value == pytest.approx((-3 + 4 + 1 - 5 + 2 + 2) / 6)
    assert declared["mean"].value == plain["mean"].value
    assert -5 <= declared["mean"].low < declared["mean"].high <= 5


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5])
def test_equal_rewards_still_have_a_width(value: float) -> None:
    found = summary(run(*[[value] * 4] * 10))["mean"]
    assert found.low <= value <= found.high
    assert found.high - found.low > 0.05


@pytest.mark.parametrize(
    "frame", [run(), run(["masked", "masked"]), run(["failed"]), run([1]), run([0.5]), run([1, 0])]
)
def test_the_smallest_runs_have_an_answer(frame: pd.DataFrame) -> None:
    found = summary(frame)
    assert found["expected"].value == len(frame)
    assert np.isnan(found["mean"].value) == (found["scored"].value == 0)
    assert repr(found) and "scored" in text(found._repr_html_())


def test_nothing_scored_is_no_number_but_has_bounds() -> None:
    found = summary(run(["masked"], ["failed"]))
    assert repr(found).startswith(
        "mean NA [no interval] · 0 of 2 scored · 1 failed · 1 masked · 2 tasks × 1 · bounds 0.00 / 1.00"
    )
    assert found["mean"].method == "none: no scored rollouts"


def test_columns_and_types_are_the_same_when_empty() -> None:
    full, empty = summary(random_run(4, 2)), summary(run())
    assert full.frame.dtypes.tolist() == empty.frame.dtypes.tolist()
    assert empty.frame.columns.tolist() == ["metric", "value", "low", "high", "n", "method"]
    shared = empty.tasks.columns.tolist()
    assert full.tasks.columns.tolist()[: len(shared)] == shared
    assert full.tasks[shared].dtypes[1:].tolist() == empty.tasks[shared].dtypes[1:].tolist()


def test_a_csv_of_ones_own(tmp_path: object) -> None:
    frame = pd.DataFrame({"question": ["a", "a", "b", "b"], "reward": [1, 0, None, 1]})
    found = summary(frame, task="question")
    assert (found["scored"].value, found["missing"].value, found["tasks"].value) == (3, 1, 2)
    assert found.tasks["task"].tolist() == ["a", "b"]


def test_an_unknown_metric_is_answered_with_the_known() -> None:
    with pytest.raises(KeyError, match="the metrics are expected, scored"):
        summary(run([1]))["accuracy"]


def test_an_unknown_answer_column_is_refused() -> None:
    with pytest.raises(ConfigError, match="no column 'answr': did you mean 'answer'"):
        summary(run([1]).assign(answer="x"), answer="answr")


def test_the_level_is_used_and_shown() -> None:
    frame = random_run(20, 1)
    wide, narrow = summary(frame, level=0.99), summary(frame, level=0.5)
    assert wide["mean"].low < narrow["mean"].low
    assert "99% interval" in text(wide._repr_html_())


def test_html_is_for_reading_and_escaped() -> None:
    frame = random_run(10, 8).assign(answer="<script>alert(1)</script>")
    found = summary(frame, answer="answer")
    shown = text(found._repr_html_())
    for words in (
        "mean of scored rollouts",
        "variation between tasks",
        "variation between repeats",
        "pass@1",
        "pass^8",
    ):
        assert words in shown
    assert "pass@3" not in shown, "powers of two and the last are enough"
    assert "<script" not in found._repr_html_()


@FRAMES
@given(runs)
def test_bounds_hold_the_mean_and_every_number_is_in_range(tasks: list[list[float | str]]) -> None:
    found = summary(run(*tasks))
    mean = found["mean"].value
    assert np.isnan(mean) or found["lower_bound"].value - 1e-12 <= mean <= found["upper_bound"].value + 1e-12
    curves = found.frame[found.frame["metric"].str.contains("[@^]|mean", regex=True)]
    for low, value, high in curves[["low", "value", "high"]].dropna().to_numpy(dtype=float):
        assert 0 <= low <= value <= high <= 1


@FRAMES
@given(runs, st.randoms())
def test_the_order_of_rows_does_not_matter(tasks: list[list[float | str]], random: object) -> None:
    frame = run(*tasks)
    order = list(range(len(frame)))
    random.shuffle(order)  # type: ignore[attr-defined]
    one, two = summary(frame).frame, summary(frame.iloc[order]).frame
    pd.testing.assert_frame_equal(one, two)


@FRAMES
@given(runs)
def test_pass_at_k_is_the_average_over_subsets_of_what_was_scored(tasks: list[list[float | str]]) -> None:
    found = summary(run(*tasks))
    for index, rollouts in enumerate(tasks):
        scored = [cell == 1.0 for cell in rollouts if not isinstance(cell, str)]
        for name in (column for column in found.tasks.columns if column.startswith("pass@")):
            subsets = list(combinations(scored, int(name[5:])))
            value = found.tasks.loc[index, name]
            assert pd.isna(value) if not subsets else value == pytest.approx(np.mean([any(s) for s in subsets]))
