"""Several attempts at a task: one is enough (pass@k), all must work (pass^k), most decide (majority@k).

Each is the expectation over the k-subsets of the attempts that were scored, so the order of the attempts does not
matter. With fewer than k scored attempts it is not defined: NaN, never 0 or 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import comb

import numpy as np
import numpy.typing as npt
import pandas as pd

from gymkit.errors import ConfigError


@lru_cache(maxsize=65536)
def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of ``k`` attempts passes, from ``c`` passes in ``n`` scored attempts.

    1 - C(n - c, k) / C(n, k), without bias; NaN when n < k. Source: M. Chen et al. (2021), Evaluating large language
    models trained on code, arXiv:2107.03374.
    """
    _check(n, c, k)
    return float("nan") if n < k else (comb(n, k) - comb(n - c, k)) / comb(n, k)


@lru_cache(maxsize=65536)
def pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that all of ``k`` attempts pass (pass^k), from ``c`` passes in ``n`` scored attempts.

    C(c, k) / C(n, k); NaN when n < k. Source: S. Yao et al. (2024), tau-bench, arXiv:2406.12045.
    """
    _check(n, c, k)
    return float("nan") if n < k else comb(c, k) / comb(n, k)


def majority_at_k(answers: Sequence[Hashable | None], rewards: Sequence[float], k: int) -> float:
    """Expected reward of the answer that most of ``k`` attempts give, over all k-subsets of the scored attempts.

    ``answers`` and ``rewards`` are those of the scored attempts of one task, in the same order. An answer that is
    None or NaN does not vote; tied answers share; without any vote the reward is 0. An answer that was scored
    differently in different attempts counts with the mean of its rewards. NaN for fewer than k attempts. The vote is
    that of X. Wang et al. (2022), Self-consistency, arXiv:2203.11171; the average over subsets is exact.
    """
    if len(answers) != len(rewards):
        raise ConfigError(f"{len(answers)} answers for {len(rewards)} rewards; one each is needed")
    _check(len(answers), 0, k)
    if len(answers) < k:
        return float("nan")
    totals: dict[Hashable, float] = {}
    counts: Counter[Hashable] = Counter()
    for answer, reward in zip(answers, rewards, strict=True):
        if not pd.isna(answer):  # type: ignore[call-overload]
            counts[answer] += 1
            totals[answer] = totals.get(answer, 0.0) + reward
    votes = [counts[answer] for answer in counts]
    silent = len(answers) - sum(votes)
    shares = [_share(votes[i], tuple(sorted(votes[:i] + votes[i + 1 :])), silent, k) for i in range(len(votes))]
    return float(sum(share * totals[answer] / counts[answer] for share, answer in zip(shares, counts, strict=True)))


@lru_cache(maxsize=65536)
def _share(own: int, others: tuple[int, ...], silent: int, k: int) -> float:
    """Expected share of the vote won by an answer with ``own`` attempts against ``others`` and ``silent`` ones.

    For each number t of own votes, ways[v, s] counts the subsets of the others with v attempts in which s answers
    tie at t and none has more.
    """
    total = 0.0
    for t in range(1, min(own, k) + 1):
        rest = k - t
        ways: npt.NDArray[np.float64] = np.zeros((rest + 1, rest // t + 1))
        ways[: min(silent, rest) + 1, 0] = [comb(silent, v) for v in range(min(silent, rest) + 1)]
        for count in others:
            ways = _with_answer(ways, count, t)
        total += comb(own, t) * float(ways[rest] @ (1 / np.arange(1, ways.shape[1] + 1)))
    return total / comb(own + sum(others) + silent, k)


def _with_answer(ways: npt.NDArray[np.float64], count: int, t: int) -> npt.NDArray[np.float64]:
    """``ways`` after one more answer with ``count`` attempts may take up to ``t`` places."""
    after = np.zeros_like(ways)
    for v in range(min(count, t, len(ways) - 1) + 1):
        part = comb(count, v) * ways[: len(ways) - v]
        if v < t:
            after[v:] += part
        else:
            after[v:, 1:] += part[:, :-1]
    return after


def _check(n: int, c: int, k: int) -> None:
    if k < 1 or not 0 <= c <= n:
        raise ConfigError(f"n={n} attempts, c={c} passes, k={k}: 0 <= c <= n and k >= 1 are needed")
