from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.stats.display import card, cells, escaped, number, p_text, plain, plural, span, table
from tests.stats.runs import STEADY

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.625, "0.62"), (0, "0.00"), (NAN, "NA"), (0.001, "0.001"), (-0.0004, "-0.0004"), (1, "1.00")],
)
def test_a_number_never_vanishes(value: float, expected: str) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.62, 0.53, 0.70), "0.62 [0.53, 0.70]"),
        ((0.6234, 0.6201, 0.6267), "0.6234 [0.6201, 0.6267]"),
        ((12.5, -3.0, 28.0), "12.50 [-3.00, 28.00]"),
        ((0.5, NAN, NAN), "0.50 [no interval]"),
        ((NAN, NAN, NAN), "NA [no interval]"),
    ],
)
def test_an_interval_has_the_decimals_it_deserves(ends: tuple[float, float, float], expected: str) -> None:
    assert span(*ends) == expected


def test_signs_and_p_values() -> None:
    assert (span(0.1, -0.1, 0.3, sign=True), number(0.0, sign=True)) == ("+0.10 [-0.10, 0.30]", "0.00")
    assert [p_text(p) for p in (0.0312, 0.0001, 1.0, NAN)] == ["p 0.031", "p < 0.001", "p 1.000", "p NA"]
    assert [plural(n, "task") for n in (0, 1, 1200)] == ["0 tasks", "1 task", "1,200 tasks"]
    assert cells(0.5, NAN, NAN) == ("0.50", "") and cells(0.5, 0.4, 0.6) == ("0.50", "[0.40, 0.60]")


@pytest.mark.parametrize("char", ["\x1b", "\u202e", "\u200b", "\u2028", "\x00", "\ud800", "\n", "\ufeff"])
def test_what_cannot_be_seen_is_spelled_out(char: str) -> None:
    shown = plain(f"a{char}b")
    assert char not in shown and shown.startswith("a\\") and shown.isascii()


@STEADY
@given(st.text(st.characters(codec=None)))
def test_any_text_is_one_safe_line(text: str) -> None:
    shown = escaped(text)
    shown.encode("utf-8")
    assert len(shown.splitlines()) <= 1
    assert not set(shown) & set("<>\"'\x1b\u202e\u200f")


class Strict(HTMLParser):
    """Fails on a tag that is closed out of turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in {"div", "p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@STEADY
@given(st.text(max_size=20), st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=3))
def test_html_keeps_its_shape_whatever_is_put_in(text: str, rows: list[tuple[str, str]]) -> None:
    Strict(card(text, text, [text], table([text, "value"], rows, text)))
