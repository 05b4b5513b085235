from __future__ import annotations

from gymkit.collect.progress import Progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_known_before_the_first_rollout() -> None:
    progress = Progress(Clock())
    assert (progress.done, progress.mean_reward, progress.rate, progress.eta, progress.seconds) == (
        0,
        None,
        None,
        None,
        0,
    )
    assert not progress.running
    progress.begin(4)
    assert progress.running
    assert (progress.rate, progress.eta) == (None, None)


def test_rate_and_time_left_count_this_run_only() -> None:
    clock = Clock()
    progress = Progress(clock)
    progress.masked = 10
    progress.begin(20)
    clock.now += 2
    progress.score(1.0)
    progress.score(0.0)
    progress.failed += 2
    assert progress.done == 14
    assert progress.mean_reward == 0.5
    assert progress.rate == 2.0
    assert progress.eta == 3.0
    progress.end()
    clock.now += 50
    assert progress.seconds == 2.0
    assert not progress.running


def test_silent_rollouts_are_named_the_longest_first() -> None:
    clock = Clock()
    progress = Progress(clock)
    progress.sent((3, 0))
    clock.now += 60
    progress.sent((1, 2))
    clock.now += 60
    progress.sent((0, 0))
    assert progress.silent(60) == ["task 3, rollout 0", "task 1, rollout 2"]
    progress.returned((3, 0))
    progress.returned((3, 0))
    assert progress.silent(60) == ["task 1, rollout 2"]


def test_a_measured_zero_counts() -> None:
    progress = Progress()
    progress.score(0.0)
    assert progress.mean_reward == 0.0
    assert (progress.reward_min, progress.reward_max) == (0.0, 0.0)
    assert repr(progress) == "<Progress 1 of 0, 0 failed, 0 masked>"
