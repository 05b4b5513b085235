from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.stats import compare
from gymkit.views.comparison import PairBrowser, Run, SideBySide, first_difference
from gymkit.views.conversation import Piece
from gymkit.views.html import visible
from gymkit.views.transcript import Transcript
from tests.views.parsed import Parsed
from tests.views.runs import trajectory
from tests.views.test_html import HOSTILE
from tests.views.touch import Touch


def said(text: str, role: str = "user") -> Piece:
    return Piece("message", role=role, text=text)


def called(arguments: str, text: str | None = "ok", **more: Any) -> Piece:
    return Piece("function_call", name="add", arguments=arguments, text=text, **more)


def run(name: str, *rewards: float | None) -> Run:
    frame = pd.DataFrame({"task_index": range(len(rewards)), "rollout_index": 0, "reward": rewards})
    frame["reward"] = frame["reward"].astype("Float64")
    frame["status"] = ["missing" if reward is None else "scored" for reward in rewards]

    def conversation(task: int, rollout: int) -> Transcript:
        return Transcript(trajectory(task, rollout, "Add.", f"{name} says {task}"))

    return Run(name, frame, conversation)


def pair(a: Run, b: Run) -> PairBrowser:
    return PairBrowser(compare(a.rewards, b.rewards).tasks, a, b, title=f"{a.name} − {b.name}")


@pytest.mark.parametrize(
    ("a", "b", "index", "differs"),
    [
        ([said("x")], [said("x")], None, None),
        ([], [], None, None),
        ([said("x")], [], 0, None),
        ([said("x"), said("y")], [said("x")], 1, None),
        ([said("x"), said("same until here")], [said("x"), said("same until now")], 1, ("text", 11)),
        ([said("x")], [said("x", "assistant")], 0, ("", 0)),
        ([called('{"n": 1}')], [called('{"n": 2}')], 0, ("arguments", 6)),
        ([called("{}", "ok")], [called("{}", None)], 0, ("", 0)),
        ([called("{}", seconds=1.0, call_id="a", step=1)], [called("{}", seconds=2.0, call_id="b")], None, None),
    ],
)
def test_the_first_difference_is_what_was_said_or_done(
    a: list[Piece], b: list[Piece], index: int | None, differs: tuple[str, int] | None
) -> None:
    found, (one, other) = first_difference(a, b)
    assert found == index
    assert one == other
    assert (one and (one.field, one.at)) == differs


@given(st.text("ab", max_size=30), st.text("ab", max_size=30), st.text("ab", max_size=30))
def test_texts_part_where_their_common_beginning_ends(start: str, one: str, other: str) -> None:
    a, b = start + one, start + other
    index, (found, _) = first_difference([said(a)], [said(b)])
    if a == b:
        assert index is None
    else:
        assert found is not None
        assert a[: found.at] == b[: found.at]
        assert a[found.at : found.at + 1] != b[found.at : found.at + 1]


def test_both_sides_are_there_and_the_difference_is_marked() -> None:
    pages = SideBySide([said("Add 3."), said("I add 3.")], [said("Add 3."), said("I add 4."), said("Done.")])
    html = pages.html(0)
    assert (
        Parsed(html).text == "userAdd 3.userAdd 3.▼ the first differenceuserI add 3.userI add 4.ended beforeuserDone."
    )
    assert '<mark class="gk-differs">3.</mark>' in html
    assert '<mark class="gk-differs">4.</mark>' in html
    assert pages.verdict() == "they part at entry 2"
    assert SideBySide([said("x")], [said("x")]).verdict() == "both went the same way"
    assert "first difference" not in SideBySide([said("x")], [said("x")]).html(0)


def test_what_is_the_same_before_the_difference_in_a_long_text_is_left_out() -> None:
    same = "x" * 1_000_000
    html = SideBySide([said(same + "cat")], [said(same + "dog")]).html(0)
    assert "… 999,840 characters that are the same …" in html
    assert '<mark class="gk-differs">cat</mark>' in html
    assert len(html) < 10_000


def test_it_opens_at_the_page_with_the_first_difference() -> None:
    a = [said(f"{index}") for index in range(100)]
    pages = SideBySide(a, [*a[:50], said("other")])
    assert (len(pages), pages.start) == (5, 2)
    assert pages.label(2) == "entries 41 to 60 of 100"
    assert "first difference" in pages.html(2)
    assert len(SideBySide([], [])) == 1


@settings(max_examples=30, deadline=None)
@given(HOSTILE, HOSTILE)
def test_hostile_conversations_are_shown_and_never_interpreted(one: str, other: str) -> None:
    parsed = Parsed(SideBySide([said(one, other), called(one)], [said(other, one), called(other)]).html(0))
    assert not set(parsed.elements) - {"div", "p", "strong", "bdi", "span", "br", "pre", "mark", "details", "summary"}
    for text in (one, other):
        assert all(part in parsed.text for part in visible(text).split("\n"))


# --- the browser ----------------------------------------------------------------------------------------------------


def test_tasks_that_were_lost_or_won_come_first_and_both_conversations_are_read() -> None:
    view = pair(run("ours", 1.0, 0.0, 0.5, None, 1.0), run("theirs", 1.0, 1.0, 0.0, 1.0, 0.25))
    touch = Touch(view)
    assert list(view.matches["outcome"]) == ["loss", "win", "win", "tie", "no score"]
    assert list(view.matches["task"]) == [1, 4, 2, 0, 3]
    assert "ours says 1" in touch.text("body")
    assert "theirs says 1" in touch.text("body")
    assert "task 1 · ▼ loss · a − b: -1 · they part at entry 2" in touch.text("head")
    assert "a: ours · mean 0 over 1 of 1 scored" in touch.text("head")
    view.query = "outcome == 'win'"
    assert list(view.selection["task"]) == [4]
    view.select(3)
    assert "a: ours · no score" in touch.text("head")
    assert "no conversation with a score" in touch.text("body")
    with pytest.raises(ConfigError, match="no row with task 9"):
        view.select(9)


def test_a_saved_notebook_has_the_tasks_and_the_open_pair() -> None:
    parsed = Parsed(pair(run("ours", 1.0, 0.0), run("theirs", 1.0, 1.0))._repr_html_())
    assert "ours − theirs" in parsed.text
    assert "a: ours · b: theirs" in parsed.text
    assert "▼ the first difference" in parsed.text
    assert not {"script", "button", "input"} & set(parsed.elements)


def test_the_state_stays_small_whatever_is_in_the_runs() -> None:
    bad = "\u202e<" * 50_000

    def conversation(task: int, rollout: int) -> Transcript:
        return Transcript(trajectory(task, rollout, *[f"{bad}{index}" for index in range(100)]))

    one, other = run("ours", *[1.0] * 30), run("theirs", *[0.0] * 30)
    view = pair(Run(bad, one.rewards, conversation), Run(bad, other.rewards, conversation))
    assert Touch(view).state_bytes < 200_000
    assert len(view._repr_html_().encode()) < 150_000
