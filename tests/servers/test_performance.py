from __future__ import annotations

import statistics

import pytest

from gymkit.servers.performance import perf_summary

PERF = [
    {"prompt_tokens": 10, "completion_tokens": 4, "num_turns": 2, "total_latency_ms": 100.0},
    {"prompt_tokens": 30, "completion_tokens": 9, "num_turns": 3, "total_latency_ms": 300.0},
    {"prompt_tokens": 20, "completion_tokens": 5, "num_turns": 0, "token_observability_coverage": 0.5},
]


def test_without_observed_rollouts_there_is_no_summary() -> None:
    assert perf_summary([]) is None
    assert perf_summary([{"reward": 1.0}, {"ng_perf": None}]) is None


def test_coverages_are_shares_of_every_rollout_masked_ones_included() -> None:
    rows = [*({"ng_perf": perf, "mask_sample": True} for perf in PERF), {"reward": 1.0}]
    found = perf_summary(rows)
    assert found is not None
    assert (found["overall_observability_coverage"], found["token_observability_coverage"]) == (0.75, 0.25)


def test_a_statistic_needs_one_rollout_that_reports_it() -> None:
    found = perf_summary([{"ng_perf": perf} for perf in PERF])
    assert found is not None
    assert not any("reasoning" in name or "cached" in name for name in found)
    assert (found["total_prompt_tokens"], found["median_prompt_tokens"]) == (60, 20)


def test_turns_have_a_population_deviation_and_latency_interpolated_percentiles() -> None:
    found = perf_summary([{"ng_perf": perf} for perf in PERF])
    assert found is not None
    assert found["std_num_turns"] == statistics.pstdev([2, 3, 0])
    assert found["total_latency_p90_ms"] == pytest.approx(280.0)
    assert found["mean_tokens_per_turn"] == statistics.fmean([2.0, 3.0]), "a rollout without turns has no ratio"
