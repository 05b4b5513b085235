from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import given

from gymkit.collect.progress import Progress
from gymkit.views.facts import Facts, Readable, clock
from gymkit.views.html import visible
from gymkit.views.progress import INTERVAL_SECONDS, Live, LogLines, TerminalLine, live
from tests.views.parsed import Parsed
from tests.views.test_html import HOSTILE


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Clock:
    return Clock()


@pytest.fixture
def progress(time: Clock) -> Progress:
    """Ten seconds into a run of twenty: six scored, one masked, one failed, two rollouts silent for long."""
    progress = Progress(clock=time)
    progress.begin(20)
    for task in range(2):
        progress.sent((task, 0))
    time.now += 70
    for reward in (1, 1, 1, 1, 1, 0):
        progress.score(reward)
    progress.masked, progress.failed = 1, 1
    return progress


def reading(progress: Readable, **how: bool) -> Facts:
    return Facts.read(progress, **how)


# --- what is said ---------------------------------------------------------------------------------------------------


def test_a_line_has_every_fact_and_the_mean_its_denominator(progress: Progress) -> None:
    assert reading(progress).line() == (
        "8 of 20 done, 1 failed, 1 masked, reward 0.833 over 6 scored, 0.11/s, 1:45 left, "
        "silent for over 60 s: task 0, rollout 0; task 1, rollout 0"
    )


def test_the_panel_says_the_same(progress: Progress) -> None:
    parsed = Parsed(reading(progress).html("counter × agent"))
    for fact in (
        "8 of 20",
        "1",
        "0.833 over 6 scored",
        "0.11",
        "1:45",
        "silent for over 60 s: task 0, rollout 0; task 1",
    ):
        assert fact in parsed.text
    assert parsed.text.startswith("counter × agentrunning 1:10")
    assert parsed.is_inert


def test_the_bar_is_a_progress_bar_for_a_screen_reader_too(progress: Progress) -> None:
    attributes = Parsed(reading(progress).html("run")).attributes
    assert {
        ("role", "progressbar"), ("aria-label", "rollouts done"), ("aria-valuemin", "0"), ("aria-valuemax", "20"),
        ("aria-valuenow", "8"), ("aria-valuetext", "8 of 20"),
    } <= set(attributes)  # fmt: skip
    widths = [
        float(value.removeprefix("width:").removesuffix("%")) for name, value in attributes if name == "style" and value
    ]
    assert widths == [30.0, 5.0, 5.0]


def test_a_rollout_without_a_reward_is_counted_apart(progress: Progress) -> None:
    progress.unscored = 2
    assert (
        "10 of 20 done, 1 failed, 1 masked, 2 without a reward, reward 0.833 over 6 scored" in reading(progress).line()
    )


def test_before_the_first_result_nothing_is_made_up(time: Clock) -> None:
    progress = Progress(clock=time)
    assert reading(progress).state == "starting …"
    assert "NaN" not in reading(progress).html("run")
    progress.begin(5)
    assert reading(progress).line() == "0 of 5 done, 0 failed, 0 masked, no reward yet, ?/s, ? left"


def test_how_it_ended(progress: Progress, time: Clock) -> None:
    assert reading(progress, stopping=True).state == "stopping … 1:10"
    progress.end()
    assert reading(progress).state == "stopped after 1:10, 12 not run"
    assert "/s" not in reading(progress).line()
    assert "silent" not in reading(progress).line()
    progress.scored += 12
    assert reading(progress).state == "finished in 1:10"


def test_many_silent_rollouts_are_counted_after_the_third(progress: Progress) -> None:
    for task in range(2, 1_002):
        progress.in_flight[task, 0] = 100.0
    assert reading(progress).silence().endswith("; task 2, rollout 0; and 999 more")


@pytest.mark.parametrize(("seconds", "shown"), [(None, "?"), (0.4, "0:00"), (59.6, "1:00"), (3_725, "1:02:05")])
def test_a_clock(seconds: float | None, shown: str) -> None:
    assert clock(seconds) == shown


@given(HOSTILE)
def test_a_hostile_title_is_shown_and_not_interpreted(title: str) -> None:
    facts = reading(Progress())
    parsed = Parsed(facts.html(title))
    assert parsed.is_inert
    assert visible(title) in parsed.text
    stream = io.StringIO()
    LogLines(title, stream).close(facts)
    assert visible(stream.getvalue()) == stream.getvalue()


# --- where it is said -----------------------------------------------------------------------------------------------


class Recorder:
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Facts]] = []
        self.press: Callable[[], None] = lambda: None
        self.updated = asyncio.Event()

    def show(self, facts: Facts, stop: Callable[[], None]) -> None:
        self.press = stop
        self.told.append(("show", facts))

    def update(self, facts: Facts) -> None:
        self.told.append(("update", facts))
        self.updated.set()

    def close(self, facts: Facts) -> None:
        self.told.append(("close", facts))


def test_a_display_is_shown_updated_and_closed_with_the_last_facts(progress: Progress) -> None:
    async def watch() -> Recorder:
        recorder, stops = Recorder(), []
        with Live(progress, recorder, lambda: stops.append("stop")) as shown:
            following = asyncio.create_task(shown.follow())
            await recorder.updated.wait()
            recorder.press()
            recorder.press()
            progress.masked += 3
        await following  # ends by itself once the display is closed
        assert stops == ["stop"]
        return recorder

    told = asyncio.run(asyncio.wait_for(watch(), timeout=10 * INTERVAL_SECONDS + 5)).told
    assert [name for name, _ in told] == ["show", "update", "close"]
    assert (told[0][1].masked, told[-1][1].masked) == (1, 4)
    assert (told[0][1].stopping, told[-1][1].stopping) == (False, True)


def test_a_run_that_fails_still_closes_its_display(progress: Progress) -> None:
    recorder = Recorder()
    with pytest.raises(RuntimeError), Live(progress, recorder, lambda: None):
        raise RuntimeError
    assert [name for name, _ in recorder.told] == ["show", "close"]


def test_a_log_gets_a_line_now_and_then_and_one_at_the_end(progress: Progress, time: Clock) -> None:
    stream = io.StringIO()
    lines = LogLines("run", stream, clock=time)
    lines.show(reading(progress), lambda: None)
    for _ in range(310):  # a minute and two seconds, five times a second
        time.now += 0.2
        lines.update(reading(progress))
    lines.close(reading(progress))
    assert [line.partition(":")[0] for line in stream.getvalue().splitlines()] == ["run"] * 3
    assert "left" in stream.getvalue()


def test_a_terminal_gets_one_line_that_is_rewritten(progress: Progress, capsys: pytest.CaptureFixture[str]) -> None:
    line = TerminalLine("run \x1b[2J")
    line.show(reading(progress), lambda: None)
    progress.masked += 1
    line.update(reading(progress))
    progress.end()
    line.close(reading(progress))
    written = capsys.readouterr().err
    assert "\x1b[2J" not in written
    assert written.startswith("run ⟨ESC⟩[2J\n")
    assert written.count("\n") == 2
    last = re.split("[\r\n]", written.strip())[-1]
    assert last.endswith("| 9 of 20 done, 1 failed, 2 masked, reward 0.833 over 6 scored")


def test_out_of_a_notebook_the_error_stream_decides(
    progress: Progress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with live(progress, stop=lambda: None, title="piped"):
        pass
    assert capsys.readouterr().err.startswith("piped: 8 of 20 done")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with live(progress, stop=lambda: None, title="typed"):
        pass
    assert "typed\n\r|" in sys.stderr.getvalue()  # type: ignore[attr-defined]
