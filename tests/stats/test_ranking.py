import pandas as pd
import pytest

from gymkit.errors import ConfigError
from gymkit.stats import compare, compare_many, holm
from tests.stats.runs import random_run, run
from tests.stats.test_summary import text

RUNS = {"old": random_run(60, 4), "same": random_run(60, 4, 1), "good": random_run(60, 4, 2, mean=0.9)}


def test_each_run_is_compared_with_the_baseline_and_corrected() -> None:
    found = compare_many(RUNS, baseline="old")
    assert found.frame["run"].tolist() == ["good", "same"]
    single = {name: compare(RUNS[name], RUNS["old"])["p_value"].value for name in ("good", "same")}
    assert found.frame["p"].tolist() == list(single.values())
    assert found.frame["p_holm"].tolist() == holm(list(single.values()))
    assert found.frame["verdict"].tolist() == ["better", "inconclusive"]
    assert found["good"].verdict == "better" and found["good"].names == ("good", "old")


def test_what_is_significant_alone_may_not_be_among_many() -> None:
    """Nine wins and two losses: p 0.065 is nothing; ten and one, p 0.012, is, but not as one of ten."""
    base = run(*[[0]] * 10, [1], *[[1]] * 9)
    lucky = run(*[[1]] * 10, [0], *[[1]] * 9)
    many = compare_many({"base": base, "lucky": lucky} | {f"copy {i}": base for i in range(9)}, baseline="base")
    assert compare(lucky, base).verdict == "better"
    row = many.frame.set_index("run").loc["lucky"]
    assert row["p"] < 0.05 < row["p_holm"] and row["verdict"] == "inconclusive"


def test_columns_have_their_types() -> None:
    frame = compare_many(RUNS, baseline="old").frame
    assert {str(frame[name].dtype) for name in ("mean", "low", "p_holm")} == {"Float64"}
    assert {str(frame[name].dtype) for name in ("wins", "losses", "ties", "paired_tasks")} == {"Int64"}


def test_runs_that_share_nothing_scored_keep_their_line() -> None:
    found = compare_many({"a": run([1]), "b": run(["failed"]), "c": run([0])}, baseline="a")
    row = found.frame.set_index("run").loc["b"]
    assert pd.isna(row["p_holm"]) and row["verdict"] == "inconclusive"
    assert "b: NA [no interval] · p NA · inconclusive" in repr(found)


@pytest.mark.parametrize("names", [["old"], ["same", "good"], []])
def test_a_baseline_and_another_run_are_needed(names: list[str]) -> None:
    with pytest.raises(ConfigError, match="baseline 'old' and at least one other run"):
        compare_many({name: RUNS[name] for name in names}, baseline="old")


def test_it_reads_well_and_is_escaped() -> None:
    found = compare_many({"old": RUNS["old"], "<i>new</i>": RUNS["good"]}, baseline="old")
    assert repr(found).startswith("1 run against old (p corrected after Holm)\n<i>new</i>: +0.")
    assert "<i>" not in found._repr_html_() and "better" in text(found._repr_html_())
