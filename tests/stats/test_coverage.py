"""The promise of an interval, kept in simulated runs: 95 % of them hold the truth. The full table is a benchmark."""

import pytest

from tests.bench.coverage import (
    Row,
    binary,
    graded,
    mean_row,
    mostly_perfect,
    pair_row,
    pass_row,
    rubric,
    two_agents,
    two_graders,
)

RUNS = 2000

KEPT = [
    mean_row("0/1, mean between 0.5 and 0.9", binary((0.5, 0.9)), 20, 1),
    mean_row("0/1, mean between 0.5 and 0.9", binary((0.5, 0.9)), 100, 1),
    mean_row("0/1, mean 0.5", binary(0.5), 20, 4),
    mean_row("0/1, mean 0.7", binary(0.7), 20, 4),
    mean_row("0/1, mean 0.9", binary(0.9), 20, 4),
    mean_row("0/1, mean 0.9, tasks alike", binary(0.9, 0.6), 30, 4),
    mean_row("graded", graded, 20, 4),
    mean_row("rubric", rubric, 50, 1),
    mean_row("mostly perfect", mostly_perfect, 20, 4),
    pass_row("pass@2", 2, 0.6, 0.3, 20, 4),
    pass_row("pass^2", 2, 0.6, 0.3, 20, 4),
    pair_row("difference, 0/1, one rollout", two_agents(0.5, 0.5, 0.2), 20, 1),
    pair_row("difference, 0/1", two_agents(0.8, 0.5, 0.2), 20, 4),
    pair_row("difference, graded", two_graders(0.1), 50, 4),
]


@pytest.mark.parametrize("row", KEPT, ids=lambda row: f"{row.name}, {row.tasks} x {row.repeats}")
def test_intervals_hold_the_truth_in_93_to_97_percent_of_runs(row: Row) -> None:
    share, _ = row.hit(RUNS, seed=0)
    assert 0.93 <= share <= 0.97


def test_the_simulation_can_tell_a_bad_interval() -> None:
    """Plain t on task means, which most tools print, fails it: skewed means near 0.9 make it too short."""
    share, _ = mean_row("plain t", binary(0.9), 20, 4, method="t").hit(RUNS, seed=0)
    assert share < 0.90
