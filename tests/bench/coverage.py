"""How often the intervals of ``gymkit.stats`` hold the truth: the table behind the choice of methods.

Each row simulates runs whose truth is known and counts the intervals that hold it. Run it:
``python -m tests.bench.coverage [--runs 2000] [--seed 0]``; it prints the table and the rows outside 93 to 97 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gymkit.stats import Interval, cluster_mean, pass_at_k, pass_hat_k
from gymkit.stats.evidence import Pairs
from gymkit.stats.interval import cluster_se, t_quantile

Floats = npt.NDArray[np.float64]
Generator = np.random.Generator
Draw = Callable[[Generator, int, int, int], tuple[Floats, Floats]]
"""(generator, runs, tasks, repeats) to rewards of shape (runs, tasks, repeats) and the truth of each run."""


def difficulties(generator: Generator, p: Floats, alike: float, tasks: int) -> Floats:
    """Chance of success of each task: a beta distribution around p whose rollouts correlate by ``alike``."""
    if alike == 0:
        return np.repeat(p[:, None], tasks, axis=1)
    size = 1 / alike - 1
    return generator.beta((p * size)[:, None], ((1 - p) * size)[:, None], (p.size, tasks))


def binary(p: float | tuple[float, float], alike: float = 0.3) -> Draw:
    """Rewards of 0 and 1; ``p`` is the mean or the ends between which each run's mean is drawn."""

    def draw(generator: Generator, runs: int, tasks: int, repeats: int) -> tuple[Floats, Floats]:
        mean = np.full(runs, p) if isinstance(p, float) else generator.uniform(*p, runs)
        chance = difficulties(generator, mean, alike, tasks)
        return (generator.random((runs, tasks, repeats)) < chance[..., None]).astype(float), mean

    return draw


def graded(generator: Generator, runs: int, tasks: int, repeats: int) -> tuple[Floats, Floats]:
    """Partial credit anywhere between 0 and 1, around each task's own level (mean 0.6)."""
    level = generator.beta(3, 2, (runs, tasks, 1))
    return generator.beta(level * 6 + 1e-9, (1 - level) * 6 + 1e-9, (runs, tasks, repeats)), np.full(runs, 0.6)


def rubric(generator: Generator, runs: int, tasks: int, repeats: int) -> tuple[Floats, Floats]:
    """Five criteria, each met or not (mean 0.8)."""
    chance = np.repeat(generator.beta(4, 1, (runs, tasks, 1)), repeats, axis=2)
    return generator.binomial(5, chance) / 5, np.full(runs, 0.8)


def mostly_perfect(generator: Generator, runs: int, tasks: int, repeats: int) -> tuple[Floats, Floats]:
    """Four tasks in five always get 1, the others anything (mean 0.9)."""
    rewards = generator.random((runs, tasks, repeats))
    return np.where(generator.random((runs, tasks, 1)) < 0.8, 1.0, rewards), np.full(runs, 0.9)


def zero_inflated(generator: Generator, runs: int, tasks: int, repeats: int) -> tuple[Floats, Floats]:
    """Nothing as often as the task is hard, else partial credit (mean 0.25)."""
    chance = generator.random((runs, tasks, 1))
    shape = (runs, tasks, repeats)
    return np.where(generator.random(shape) < chance, generator.random(shape), 0.0), np.full(runs, 0.25)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    tasks: int
    repeats: int
    intervals: Callable[[Generator, int], Iterator[tuple[Interval, float]]]
    """(generator, runs) to the interval of each run and what it should hold."""

    def hit(self, runs: int, seed: int) -> tuple[float, float]:
        """Share of intervals that hold the truth, and their mean width."""
        pairs = list(self.intervals(np.random.default_rng(seed), runs))
        inside = [found.low <= truth <= found.high for found, truth in pairs]
        return float(np.mean(inside)), float(np.mean([found.high - found.low for found, _ in pairs]))


def mean_row(name: str, draw: Draw, tasks: int, repeats: int, method: str = "ours") -> Row:
    """The interval of ``cluster_mean``, or of plain cluster t for contrast."""
    labels = np.repeat(np.arange(tasks), repeats)

    def intervals(generator: Generator, runs: int) -> Iterator[tuple[Interval, float]]:
        rewards, truth = draw(generator, runs, tasks, repeats)
        for run, known in zip(rewards.reshape(runs, -1), truth, strict=True):
            yield (cluster_mean(run, labels) if method == "ours" else plain_t(run, labels)), float(known)

    return Row(name, tasks, repeats, intervals)


def plain_t(run: Floats, labels: npt.NDArray[np.intp]) -> Interval:
    """What most tools would print: Student's t on task means."""
    half = t_quantile(0.95, int(labels.max())) * cluster_se(run, labels)
    return Interval(run.mean(), run.mean() - half, run.mean() + half, 0, "t")


def pass_row(name: str, k: int, mean: float, alike: float, tasks: int, repeats: int) -> Row:
    """pass@k (or pass^k when the name says so), averaged over tasks."""
    hat = name.startswith("pass^")
    formula = pass_hat_k if hat else pass_at_k
    table = np.array([formula(repeats, passes, k) for passes in range(repeats + 1)])
    big = difficulties(np.random.default_rng(1), np.array([mean]), alike, 1_000_000)
    truth = float((big**k if hat else 1 - (1 - big) ** k).mean())

    def intervals(generator: Generator, runs: int) -> Iterator[tuple[Interval, float]]:
        rewards, _ = binary(mean, alike)(generator, runs, tasks, repeats)
        for passes in rewards.sum(axis=2).astype(int):
            yield cluster_mean(table[passes]), truth

    return Row(name, tasks, repeats, intervals)


def pair_row(
    name: str, draw: Callable[[Generator, int, int, int], tuple[Floats, Floats, float]], tasks: int, repeats: int
) -> Row:
    """The interval of the difference that ``compare`` prints."""

    def intervals(generator: Generator, runs: int) -> Iterator[tuple[Interval, float]]:
        a, b, truth = draw(generator, runs, tasks, repeats)
        binary_rewards = repeats == 1 and bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all())
        pairs = Pairs(table=None, binary=binary_rewards, repeats=repeats, reward_range=(0.0, 1.0), level=0.95)  # type: ignore[arg-type]
        for differences in a.mean(axis=2) - b.mean(axis=2):
            yield pairs.interval(differences, np.arange(tasks)), truth

    return Row(name, tasks, repeats, intervals)


def two_agents(p: float, alike: float, better: float) -> Callable[..., tuple[Floats, Floats, float]]:
    """0/1 rewards on the same tasks; the first agent turns a share ``better`` of the failures into successes."""

    def draw(generator: Generator, runs: int, tasks: int, repeats: int) -> tuple[Floats, Floats, float]:
        chance = difficulties(generator, np.full(runs, p), alike, tasks)[..., None]
        shape = (runs, tasks, repeats)
        a = generator.random(shape) < chance + better * (1 - chance)
        b = generator.random(shape) < chance
        return a.astype(float), b.astype(float), better * (1 - p)

    return draw


def two_graders(shift: float) -> Callable[..., tuple[Floats, Floats, float]]:
    """Partial credit on the same tasks, the first agent better by ``shift``, noise of its own in each rollout."""

    def draw(generator: Generator, runs: int, tasks: int, repeats: int) -> tuple[Floats, Floats, float]:
        level = generator.uniform(0.3, 0.6, (runs, tasks, 1))
        noise = generator.uniform(-0.3, 0.3, (2, runs, tasks, repeats))
        return level + shift + noise[0], level + noise[1], shift

    return draw


def rows() -> Iterator[Row]:
    """The whole table, about a hundred lines."""
    for tasks in (20, 30, 50, 100):
        yield mean_row("0/1, mean drawn from 0.5-0.9", binary((0.5, 0.9)), tasks, 1)
        for p in (0.5, 0.6, 0.7, 0.8, 0.9):
            yield mean_row(f"0/1, mean {p}", binary(p), tasks, 1)
        for name, draw in (
            ("graded", graded),
            ("rubric", rubric),
            ("mostly perfect", mostly_perfect),
            ("zeros", zero_inflated),
        ):
            yield mean_row(name, draw, tasks, 1)
    for tasks, repeats in ((5, 4), (10, 4), (20, 4), (20, 8), (30, 4), (50, 2), (50, 4), (100, 4)):
        for p in (0.5, 0.7, 0.9):
            for alike in (0.1, 0.3, 0.6):
                yield mean_row(f"0/1, mean {p}, tasks alike {alike}", binary(p, alike), tasks, repeats)
        for name, draw in (
            ("graded", graded),
            ("rubric", rubric),
            ("mostly perfect", mostly_perfect),
            ("zeros", zero_inflated),
        ):
            yield mean_row(name, draw, tasks, repeats)
    for p in (0.5, 0.7, 0.9):
        yield mean_row(f"plain t for contrast: 0/1, mean {p}", binary(p), 20, 4, method="t")
    for tasks in (20, 50):
        for k in (2, 4):
            yield pass_row(f"pass@{k}, mean 0.6", k, 0.6, 0.3, tasks, 4)
            yield pass_row(f"pass^{k}, mean 0.6", k, 0.6, 0.3, tasks, 4)
    for tasks in (20, 50, 100):
        for repeats in (1, 4):
            for better in (0.0, 0.2):
                for p in (0.5, 0.8):
                    yield pair_row(f"difference, 0/1, mean {p}, +{better}", two_agents(p, 0.5, better), tasks, repeats)
            yield pair_row("difference, graded, +0.1", two_graders(0.1), tasks, repeats)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    outside, total = [], 0
    print(f"{'rewards':44} {'size':>9} {'holds the truth':>16} {'width':>7}")
    for row in rows():
        share, width = row.hit(options.runs, options.seed)
        total += 1
        mark = "" if 0.93 <= share <= 0.97 else "  <-"
        outside += [row.name] if mark else []
        print(f"{row.name:44} {f'{row.tasks} × {row.repeats}':>9} {share:>15.1%} {width:>7.3f}{mark}", flush=True)
    print(f"{total - len(outside)} of {total} rows lie in 93 to 97 %")


if __name__ == "__main__":
    main()
