import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.stats import compare, mcnemar_exact, paired_difference, sign_flip, tango
from tests.stats.runs import FRAMES, random_run, run
from tests.stats.test_summary import runs, text


def coins(*rewards: float | str) -> pd.DataFrame:
    return run(*[[reward] for reward in rewards])


def test_one_coin_a_task_is_tango_and_mcnemar() -> None:
    a, b = coins(*[1] * 9, *[0] * 4, *[1] * 7), coins(*[0] * 9, *[1] * 4, *[1] * 7)
    found = compare(a, b)
    expected = tango(9, 4, 20)
    assert (found["difference"].low, found["difference"].high) == (expected.low, expected.high)
    assert found["difference"].value == pytest.approx(0.25)
    assert found["p_value"].value == mcnemar_exact(9, 4)
    assert found["p_value"].method == "exact McNemar"
    assert [found[name].value for name in ("wins", "losses", "ties")] == [9, 4, 7]


def test_repeats_are_averaged_before_anything_else() -> None:
    a, b = run([1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]), run([0, 0], [1, 0], [0, 0])
    found, differences = compare(a, b), [0.5, 0.5, 0.25]
    expected = paired_difference(differences, repeats=3)
    assert (found["difference"].low, found["difference"].high) == pytest.approx((expected.low, expected.high))
    assert (found["p_value"].value, found["p_value"].method) == (sign_flip(differences), "sign-flip")
    assert found["difference"].value == pytest.approx(found["mean_a"].value - found["mean_b"].value)


def test_a_large_difference_is_found_and_a_small_one_is_not() -> None:
    base = random_run(60, 4, seed=1)
    assert compare(random_run(60, 4, seed=2), base).verdict == "inconclusive"
    assert compare(random_run(60, 4, seed=2, mean=0.9), base).verdict == "better"
    assert compare(base, random_run(60, 4, seed=2, mean=0.9)).verdict == "worse"


def test_only_tasks_with_a_score_on_both_sides_count() -> None:
    found = compare(coins(1, 1, "masked", "failed", 0), coins(0, 1, 1, 0).iloc[:4])
    assert [found[name].value for name in ("paired_tasks", "without_score", "unpaired_a", "unpaired_b")] == [2, 2, 1, 0]
    assert [found[f"{name}_a"].value for name in ("expected", "scored", "masked", "failed")] == [5, 3, 1, 1]
    assert found.tasks["outcome"].tolist() == ["win", "tie", "no score", "no score", "only in a"]
    assert "1 only in a" in found.facts and "2 without a score on one side" in found.facts


def test_tasks_of_both_sides_are_reported_whichever_side_lacks_them() -> None:
    a, b = run([1], [0]), run([1], [0], [1]).query("task_index > 0")
    assert compare(a, b).tasks["outcome"].tolist() == ["only in a", "tie", "only in b"]


def test_pairing_follows_the_id_when_the_files_are_in_another_order() -> None:
    a, b = run([1], [0], ids=["x", "y"]), run([0], [1], ids=["y", "x"])
    assert compare(a, b)["ties"].value == 2
    assert compare(a, b, task="task_index")["ties"].value == 0


def test_ids_that_do_not_name_a_task_are_not_used() -> None:
    a, b = run([1], [0], ids=["same", "same"]), run([1], [0], ids=["same", "same"])
    assert compare(a, b)["paired_tasks"].value == 2


def test_nothing_in_common_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="no task_id in common; give task="):
        compare(run([1], ids=["x"]), run([1], ids=["y"]))
    with pytest.raises(ConfigError, match="in common"):
        compare(run(), run())


def test_nothing_scored_in_common_is_no_verdict() -> None:
    found = compare(coins(1, "failed"), coins("failed", 1))
    assert found.verdict == "inconclusive"
    assert np.isnan(found["difference"].value) and np.isnan(found["p_value"].value)
    assert "NA" in repr(found) and "paired task" in text(found._repr_html_())


def test_flips_point_at_the_rollouts_that_show_them() -> None:
    a = run([0, 1, 0], [1, 0], [1, 1])
    b = run([0, 0, 1], [1, 1], [1, 1])
    flips = compare(a, run([0, 0], [1, 1], [1, 1])).flips
    win, loss = (flips[flips["outcome"] == outcome].iloc[0] for outcome in ("win", "loss"))
    assert (win["task"], win["rollout_index_a"], win["rollout_index_b"]) == (0, 1, 0), "a's best, b's worst"
    assert (loss["task"], loss["rollout_index_a"], loss["rollout_index_b"]) == (1, 1, 0), "a's worst, b's best"
    assert compare(a, b).flips["task"].tolist() == [1], "a tie is no flip"
    assert flips["difference"].abs().is_monotonic_decreasing


def test_keys_are_each_sides_own() -> None:
    a, b = run([1], [0], ids=["x", "y"]), run([1], [1], ids=["y", "x"])
    flip = compare(a, b).flips.iloc[0]
    assert (flip["task"], flip["task_index_a"], flip["task_index_b"]) == ("y", 1, 0)


def test_it_warns_when_the_conclusion_depends_on_the_unscored() -> None:
    a, b = coins(*[1] * 8, *["failed"] * 8), coins(*[0] * 8, *[1] * 8)
    found = compare(a, b)
    assert found.verdict == "better"
    assert found["difference_lower_bound"].value == found["difference_unscored_lowest"].value == 0
    assert found["difference_upper_bound"].value == 0.5
    assert any("the conclusion depends on the 8 unscored rollouts" in note for note in found.warnings)
    assert any("50% in a and 0% in b" in note for note in found.warnings)


def test_complete_runs_have_no_warnings() -> None:
    assert compare(coins(*[1, 0] * 10), coins(*[1, 0] * 10)).warnings == ()


def test_identical_runs_are_inconclusive_and_say_what_they_could_have_seen() -> None:
    frame = coins(*[1, 0] * 10)
    found = compare(frame, frame)
    assert (found["difference"].value, found["p_value"].value, found.verdict) == (0, 1, "inconclusive")
    assert 0.1 < found["minimum_detectable"].value < 0.3
    assert np.isnan(found["more_tasks"].value) and found["more_tasks"].method == "none: no difference seen"
    assert found["difference"].low < 0 < found["difference"].high


def test_more_tasks_would_settle_it() -> None:
    found = compare(random_run(40, 1, seed=2, mean=0.7), random_run(40, 1, seed=3))
    assert found.verdict == "inconclusive"
    se = (found["difference"].high - found["difference"].low) / 2 / 1.959964
    needed = found["paired_tasks"].value * (2.8016 * se / found["difference"].value) ** 2
    assert found["more_tasks"].value == pytest.approx(needed - found["paired_tasks"].value, rel=1e-3, abs=1)
    assert "more tasks would settle it" in repr(found)
    few = compare(coins(1, 1, 1, 1, 1), coins(0, 0, 0, 0, 0))
    assert few["more_tasks"].value == 1 and "about 1 more task would settle it" in repr(few)


def test_a_cluster_column_makes_groups_the_units() -> None:
    a, b = (random_run(40, 1, seed=seed).assign(repository=lambda f: f["task_index"] // 10) for seed in (1, 2))
    alone, grouped = compare(a, b), compare(a, b, cluster="repository")
    assert (alone["p_value"].method, grouped["p_value"].method) == ("exact McNemar", "sign-flip")
    assert grouped["difference"].n == 4
    assert grouped["difference"].value == pytest.approx(alone["difference"].value)


def test_a_task_that_changes_cluster_is_refused() -> None:
    a, b = run([1]).assign(repository="x"), run([1]).assign(repository="y")
    with pytest.raises(ConfigError, match="task 0 has repository 'x' in one run and 'y' in the other"):
        compare(a, b, cluster="repository")


def test_rewards_outside_the_unit_range() -> None:
    a, b = run([5, 3], [2, 1], [9, "failed"]), run([1, 1], [0, 1], [1, 1])
    plain, declared = compare(a, b), compare(a, b, reward_range=(0, 10))
    assert plain["difference"].method == "cluster t" and np.isnan(plain["difference_lower_bound"].value)
    assert any("give reward_range" in note for note in plain.warnings)
    assert declared["difference_lower_bound"].value == pytest.approx((3 + 1 + 3.5) / 3)


def test_names_appear_and_foreign_text_is_shown_not_run() -> None:
    a, b = run([1], [0], ids=["<b>x</b>", "y\u202e\x1b[31m"]), run([0], [1], ids=["<b>x</b>", "y\u202e\x1b[31m"])
    found = compare(a, b, names=("<script>new", "old"))
    html = found._repr_html_()
    assert "<script" not in html and "<b>x" not in html and "\u202e" not in html and "\x1b" not in html
    assert "\\u202e" in html and "mean (old)" in text(html)
    assert repr(found).startswith("<script>new − old: 0.00")


def test_a_table_that_is_cut_says_so() -> None:
    shown = text(compare(coins(*[1] * 30), coins(*[0] * 30))._repr_html_())
    assert "20 of 30 tasks that were won or lost" in shown


@FRAMES
@given(runs, runs)
def test_turning_the_comparison_round_turns_every_sign(
    one: list[list[float | str]], two: list[list[float | str]]
) -> None:
    ahead, back = compare(run(*one), run(*two)), compare(run(*two), run(*one))
    assert ahead["wins"].value == back["losses"].value
    for name in ("difference", "difference_unscored_lowest"):
        for mine, other in ((ahead[name].low, back[name].high), (ahead[name].value, back[name].value)):
            assert mine == pytest.approx(-other, abs=1e-9, nan_ok=True)
    assert ahead["p_value"].value == pytest.approx(back["p_value"].value, nan_ok=True)
    assert sorted([ahead.verdict, back.verdict]) in (["better", "worse"], ["inconclusive", "inconclusive"])


@FRAMES
@given(runs, runs)
def test_every_task_has_one_outcome_and_the_bounds_hold(
    one: list[list[float | str]], two: list[list[float | str]]
) -> None:
    found = compare(run(*one), run(*two))
    assert len(found.tasks) == max(len(one), len(two))
    parts = ("paired_tasks", "without_score", "unpaired_a", "unpaired_b")
    assert sum(found[name].value for name in parts) == len(found.tasks)
    assert found["difference_lower_bound"].value <= found["difference_upper_bound"].value


@FRAMES
@given(runs, st.randoms())
def test_the_order_of_rows_does_not_matter(tasks: list[list[float | str]], random: object) -> None:
    frame, other = run(*tasks), run(*[[0.5]] * len(tasks))
    order = list(range(len(frame)))
    random.shuffle(order)  # type: ignore[attr-defined]
    pd.testing.assert_frame_equal(compare(frame, other).frame, compare(frame.iloc[order], other).frame)
