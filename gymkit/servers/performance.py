"""``perf_summary``: tokens, turns and latency over the rollouts whose model calls were observed (``ng_perf``)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gymkit.servers.statistics import Number, quantile

_TOKENS = ("prompt_tokens", "cached_prompt_tokens", "completion_tokens", "reasoning_tokens")
_STATS: dict[str, Callable[[Sequence[Number]], Number]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "total": sum,
    "std": statistics.pstdev,
    "min": min,
    "max": max,
    **{f"p{percent}": partial(quantile, share=percent / 100) for percent in (50, 90, 99)},
}


def perf_summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Number] | None:
    """Summarise ``ng_perf`` of ``rows``, masked ones included; None when no row has it.

    A statistic is there when at least one rollout reports what it needs. Coverages are shares of all ``rows``.
    Latencies are milliseconds; ``std_num_turns`` divides by n, not n - 1.
    """
    records = [row["ng_perf"] for row in rows if isinstance(row.get("ng_perf"), dict)]
    if not records:
        return None
    counted = [value for value in _values(records, "token_observability_coverage") if value > 0]
    summary: dict[str, Number] = {
        "overall_observability_coverage": len(records) / len(rows),
        "token_observability_coverage": len(counted) / len(rows),
    }
    for name in _TOKENS:
        summary |= _stats(_values(records, name), ("mean", "median", "total"), f"{{}}_{name}")
    summary |= _stats(_values(records, "num_turns"), ("mean", "median", "std", "min", "p90", "max"), "{}_num_turns")
    summary |= _stats(_tokens_per_turn(records), ("mean", "median"), "{}_tokens_per_turn")
    return summary | _stats(_values(records, "total_latency_ms"), ("p50", "p90", "p99", "mean"), "total_latency_{}_ms")


def _values(records: Sequence[Mapping[str, Any]], name: str) -> list[Number]:
    return [record[name] for record in records if isinstance(record.get(name), (int, float))]


def _tokens_per_turn(records: Sequence[Mapping[str, Any]]) -> list[Number]:
    pairs = [(record.get("completion_tokens"), record.get("num_turns")) for record in records]
    return [
        tokens / turns
        for tokens, turns in pairs
        if isinstance(tokens, (int, float)) and isinstance(turns, (int, float)) and turns > 0
    ]


def _stats(values: Sequence[Number], names: Sequence[str], key: str) -> dict[str, Number]:
    return {key.format(name): _STATS[name](values) for name in names} if values else {}
