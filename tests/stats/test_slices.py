import pandas as pd
import pytest

from gymkit.errors import ConfigError
from gymkit.stats import by, summary
from tests.stats.runs import random_run, run

FRAME = random_run(12, 3).assign(topic=lambda f: (f["task_index"] % 3).map({0: "maths", 1: "code", 2: None}))


def test_each_slice_is_summarised_as_it_would_be_alone() -> None:
    table = by(FRAME, "topic").set_index("topic")
    alone = summary(FRAME[FRAME["topic"] == "code"])
    row = table.loc["code"]
    assert (row["expected"], row["scored"], row["tasks"]) == (12, alone["scored"].value, 4)
    assert (row["mean"], row["low"], row["high"]) == (alone["mean"].value, alone["mean"].low, alone["mean"].high)
    assert (row["lower_bound"], row["method"]) == (alone["lower_bound"].value, alone["mean"].method)


def test_no_rollout_falls_between_the_slices() -> None:
    table = by(FRAME, "topic")
    assert table["topic"].isna().sum() == 1, "tasks without a topic are a slice too"
    for name in ("expected", "scored", "masked", "failed", "missing"):
        assert table[name].sum() == summary(FRAME)[name].value


def test_several_columns_make_the_combinations() -> None:
    table = by(FRAME.assign(agent=FRAME["task_index"] % 2), "agent", "topic")
    assert table.columns.tolist()[:2] == ["agent", "topic"]
    assert len(table) == 6


def test_runs_put_together_can_be_sliced_apart() -> None:
    both = pd.concat([run([1], [1]).assign(agent="a"), run([0], [1]).assign(agent="b")])
    assert by(both, "agent")["mean"].tolist() == [1.0, 0.5]


def test_slices_share_one_range() -> None:
    """A slice whose rewards happen to lie in 0..1 would otherwise get bounds that the others do not have."""
    table = by(run([0.5, "failed"], [-3, 2]), "task_index")
    assert table["upper_bound"].isna().tolist() == [True, False], "a slice that is complete has its mean as bounds"
    assert by(run([0.5, "failed"], [-3, 2]), "task_index", reward_range=(-5, 5))["upper_bound"].tolist() == [2.75, -0.5]


def test_small_slices_come_with_a_note() -> None:
    assert "only 1 independent unit" in by(run([1, 0], [1, 1]), "task_index")["note"][0]


def test_the_column_keeps_its_type_and_an_empty_frame_its_columns() -> None:
    frame = run([1], [0]).assign(kind=pd.Categorical(["x", "y"]))
    full, empty = by(frame, "kind"), by(frame.iloc[:0], "kind")
    assert full["kind"].dtype == frame["kind"].dtype
    assert full.dtypes.tolist() == empty.dtypes.tolist()
    assert empty.empty


def test_a_column_is_needed_and_known() -> None:
    with pytest.raises(ConfigError, match="name of a column"):
        by(FRAME)
    with pytest.raises(ConfigError, match="did you mean 'topic'"):
        by(FRAME, "topics")
