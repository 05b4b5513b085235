from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymkit.views.conversation import Piece, asked
from gymkit.views.entry import Budget
from gymkit.views.html import escape, visible
from gymkit.views.paging import Conversation, Text
from tests.views.parsed import Parsed
from tests.views.test_html import HOSTILE

HIDDEN = "\u202e" * 12_000


def said(text: str) -> Piece:
    return Piece("message", role="user", text=text)


def text_of(pages: Conversation | Text) -> str:
    return "".join(Parsed(pages.html(number)).text for number in range(len(pages)))


def test_a_short_conversation_is_one_page_and_needs_no_label() -> None:
    pages = Conversation([said("hello"), said("world")])
    assert (len(pages), pages.label(0)) == (1, "")
    assert text_of(pages) == "userhellouserworld"
    assert len(Conversation([])) == 1
    assert Parsed(Conversation([]).html(0)).text == ""


def test_many_entries_are_turned_page_by_page_and_none_is_lost() -> None:
    pages = Conversation([said(f"<{index}>") for index in range(1_000)])
    assert len(pages) == 25
    assert pages.label(1) == "entries 41 to 80 of 1,000"
    assert text_of(pages) == "".join(f"user<{index}>" for index in range(1_000))
    assert pages.page_of(40) == 1
    assert pages.page_of(39) == 0


def test_a_text_of_100_megabytes_goes_on_from_page_to_page() -> None:
    text = "0123456789" * 10_000_000
    pages = Conversation([said("before"), said(text), said("after")])
    assert len(pages) > 4_000
    shown = Parsed(pages.html(2_000)).text
    assert "part 4,000 of 8,334" in shown
    assert len(pages.html(2_000)) < 40_000
    assert pages.label(2_000) == "entry 2 of 3"
    assert "after" in Parsed(pages.html(len(pages) - 1)).text


def test_arguments_and_output_of_a_call_go_on_together() -> None:
    call = Piece("function_call", name="log", arguments="a" * 30_000, text="b" * 13_000)
    shown = text_of(Conversation([call]))
    assert (shown.count("a" * 100), shown.count("b" * 100)) == (300, 130)
    assert "the output is in an earlier part" in shown


@pytest.mark.parametrize("text", [HIDDEN * 3, "<" * 40_000, "\ud800" * 40_000])
def test_a_page_is_small_whatever_is_in_it(text: str) -> None:
    """A hidden character takes eighty bytes of HTML, and a name can be as long as a text."""
    pages = Conversation([Piece("message", role=text, text=text)] * 100)
    for number in (0, len(pages) - 1):
        html = pages.html(number)
        assert len(html.encode()) < 90_000
        assert "…" in html


@settings(max_examples=40, deadline=None)
@given(st.lists(HOSTILE, min_size=1, max_size=5))
def test_hostile_texts_are_shown_and_never_interpreted(texts: list[str]) -> None:
    pages = Conversation([Piece("message", role=text, text=text, name=text) for text in texts])
    parsed = Parsed(pages.html(0))
    assert parsed.is_inert
    assert all(visible(text) in parsed.text for text in texts)


def test_a_text_has_pages_too() -> None:
    pages = Text("x" * 50_000)
    assert (len(pages), pages.label(1)) == (3, "characters 24,001 to 48,000 of 50,000")
    assert text_of(pages) == "x" * 50_000
    assert (len(Text("")), Text("").label(0)) == (1, "")


def test_a_budget_bounds_every_text_and_all_of_them() -> None:
    budget = Budget(10, 15)
    assert budget.take("a" * 12) == ("a" * 10, "… 2 more characters, not shown")
    assert budget.name("b" * 5) == "b" * 5
    shown, note = Budget.in_html(1_000, 10_000).take(HIDDEN)
    assert 5_000 < len(escape(shown)) <= 10_000
    assert note == f"… {12_000 - len(shown):,} more characters, not shown"
    assert Budget(5, 100).name("long name") == "long  …"


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"input": "Look."}, [("user", "Look.")]),
        ({"input": [{"role": "system", "content": "Be brief."}]}, [("system", "Be brief.")]),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"text": "b"}]}]},
            [("user", "ab")],
        ),
        ({"input": [{"role": 3, "content": None}, "junk"]}, [("3", "")]),
        ({"input": None}, []),
        (None, []),
    ],
)
def test_what_a_failed_attempt_was_asked(params: object, found: list[tuple[str, str]]) -> None:
    assert [(piece.role, piece.text) for piece in asked({"responses_create_params": params})] == found
