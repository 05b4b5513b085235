from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pytest

from gymkit.views.html import Html
from gymkit.views.report import Key, report
from gymkit.views.transcript import Transcript
from tests.views.parsed import PAGE, Parsed
from tests.views.runs import rewards, trajectory

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror=alert(1)>\x1b[31m\u202e\u200b\U0010d800"
NONE = pd.DataFrame({"attempts": [], "rollouts": [], "failure_kind": [], "cause": [], "message": []})


class Run:
    """Conversations of these texts, and a note of what was read."""

    def __init__(self, *texts: str, **record: Any) -> None:
        self.read: list[Key] = []
        self._texts = texts
        self._record = record

    def __call__(self, keys: Sequence[Key]) -> Iterator[tuple[Key, Transcript, dict[str, Any]]]:
        for key in keys:
            self.read.append(key)
            yield key, Transcript(trajectory(*key, *self._texts)), self._record


def made(frame: pd.DataFrame, run: Run, causes: pd.DataFrame = NONE, title: str = "counter × agent") -> str:
    return report(frame, causes, run, title=title, summary=Html("<p>mean 0.5</p>"))


def test_a_report_has_the_facts_in_order_and_links_from_rows_to_conversations() -> None:
    causes = pd.DataFrame(
        {
            "attempts": [3],
            "rollouts": [2],
            "failure_kind": ["timeout"],
            "cause": ["no answer"],
            "message": ["no answer in 3 s"],
        }
    )
    page = made(rewards(2, 2), Run("hello", "bye", failure_reason="no verdict"), causes)
    text = Parsed(page).text
    parts = [
        "counter × agent",
        "mean 0.5",
        "Failures by cause",
        "no answer in 3 s",
        "4 rollouts",
        "Conversations",
        "bye",
    ]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)
    assert "is no measurement of the agent" in text
    assert "planned, and no result" in text
    links, ids = (re.findall(pattern, page) for pattern in (r'href="#([^"]+)"', r' id="([^"]+)"'))
    assert links == ids == ["r-0-0", "r-0-1", "r-1-0", "r-1-1"]


def test_it_needs_no_script_and_no_network() -> None:
    page = made(rewards(2, 2), Run("x"))
    found = Parsed(page)
    assert set(found.elements) <= PAGE
    assert not {name for name, _ in found.attributes} & {"src", "srcset", "action", "style", "onclick"}
    assert all(value and value.startswith("#") for name, value in found.attributes if name == "href")
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\(", page)


def test_hostile_runs_are_shown_and_never_interpreted() -> None:
    bad = rewards(2, 2, task_id=HOSTILE).assign(failure_kind=HOSTILE)
    causes = pd.DataFrame(
        {"attempts": [1], "rollouts": [1]} | {name: [HOSTILE] for name in ("failure_kind", "cause", "message")}
    )
    page = made(bad, Run(HOSTILE, error=HOSTILE, **{HOSTILE: HOSTILE}), causes, title=HOSTILE)
    assert set(Parsed(page).elements) <= PAGE
    assert "<script>window.hacked = 1</script>" in Parsed(page).text
    assert not re.search("[\x1b\u202e\u200b\U0010d800]", page)


@pytest.mark.parametrize(
    ("texts", "cut"),
    [
        (("short",) * 4, 0),
        (("log line\n" * 400,) * 3, 1_000),
        ((HOSTILE * 300,) * 3, 1_000),
        (("word",) * 60, 1_000),
    ],
)
def test_a_thousand_rollouts_stay_under_5_megabytes_and_cuts_are_said(texts: tuple[str, ...], cut: int) -> None:
    run = Run(*texts, note="x" * 1_000)
    page = made(rewards(250, 4), run)
    assert len(page.encode()) < 5_000_000
    assert len(run.read) == 1_000
    assert page.count("not shown</p></div></div></details>") == cut
    assert all(f'id="r-{task}-{rollout}"' in page for task in range(250) for rollout in range(4))


def test_what_short_conversations_leave_over_is_there_for_long_ones() -> None:
    def read(keys: Sequence[Key]) -> Iterator[tuple[Key, Transcript, dict[str, Any]]]:
        for key in keys:
            yield key, Transcript(trajectory(*key, *["x" * 10_000] * (100 if key == (24, 3) else 1))), {}

    page = report(rewards(25, 4), NONE, read, title="t", summary=Html(""))
    assert "not shown" not in page
    assert len(page) > 1_900_000


def test_of_many_rollouts_the_worst_are_listed_and_that_is_said() -> None:
    run = Run("x")
    page = made(rewards(600, 4), run)
    text = Parsed(page).text
    assert "1,000 of 2,400 rollouts: those that failed, were masked or scored lowest" in text
    assert len(run.read) == 1_000
    assert run.read == sorted(run.read)
    assert text.count("● scored") == 0
    assert text.count("✗ failed") == 600


def test_a_run_without_rollouts_is_a_report_too() -> None:
    text = Parsed(made(rewards(0, 0), Run())).text
    assert "No attempt failed." in text
    assert "0 rollouts" in text
