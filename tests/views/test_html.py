from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gymkit.views.html import Html, escape, fold, framed, join, style_sheet, table, tag, trimmed, visible
from tests.views.parsed import Parsed

ANY = st.text(st.characters(exclude_categories=[]))  # lone surrogates and everything else
HOSTILE = st.one_of(
    ANY,
    st.text(st.sampled_from("<>&\"'`=/!-[]\x00\x1b\r\n\t\u202e\u200b\ud800\ufeff\ufe0f\u2028\x85a")),
    st.sampled_from(
        ["<script>alert(1)</script>", "</pre></details><img src=x onerror=alert(1)>", "<!--", "]]>", "&lt;b"]
    ),
)


@given(HOSTILE)
@example("\x1b]8;;http://evil\x07link\x1b]8;;\x07")
def test_escaped_text_is_shown_and_never_interpreted(text: str) -> None:
    parsed = Parsed(escape(text))
    assert set(parsed.elements) <= {"span"}
    assert parsed.text == visible(text)


@given(HOSTILE)
def test_visible_text_is_safe_to_print_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert visible(shown) == shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "⟨ESC⟩[31mred⟨ESC⟩[0m"),
        ("a\r\nb\tc", "a⟨CR⟩\nb\tc"),
        ("pay\u202egnp.exe", "pay⟨U+202E⟩gnp.exe"),
        ("zero\u200bwidth\u2060", "zero⟨U+200B⟩width⟨U+2060⟩"),
        ("half \ud83d", "half ⟨U+D83D⟩"),
        ("half, from a frame \U0010d83d", "half, from a frame ⟨U+D83D⟩"),
        ("tags \U000e0041\U000e0042", "tags ⟨U+E0041⟩⟨U+E0042⟩"),
        ("smuggled a\ufe0f\ufe01", "smuggled a⟨U+FE0F⟩⟨U+FE01⟩"),
        ("❤\ufe0f 1\ufe0f", "❤\ufe0f 1\ufe0f"),
        ("שלום, 你好, ÄÖ, 😀 → ✓", "שלום, 你好, ÄÖ, 😀 → ✓"),
    ],
)
def test_what_hides_reorders_or_steers_gets_a_mark_and_the_rest_none(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_mark_says_what_the_character_is() -> None:
    assert 'title="U+202E RIGHT-TO-LEFT OVERRIDE"' in escape("\u202e")
    assert 'title="U+0007"' in escape("\a")


@given(HOSTILE, HOSTILE)
def test_no_child_and_no_attribute_gets_out_of_its_element(child: str, value: str) -> None:
    parsed = Parsed(tag("p", child, title=value, class_="x"))
    assert set(parsed.elements) <= {"p", "span"}
    assert parsed.attributes[:2] == [("title", visible(value)), ("class", "x")]
    assert parsed.text == visible(child)


def test_attributes_that_are_true_false_or_none() -> None:
    assert tag("details", open=True, hidden=False, title=None) == "<details open></details>"
    assert tag("br") == "<br>"
    assert tag("p", aria_label="a & b") == '<p aria-label="a &amp; b"></p>'


def test_html_is_kept_and_what_python_does_to_it_is_text_again() -> None:
    assert tag("p", tag("b", "x"), "<") == "<p><b>x</b>&lt;</p>"
    assert escape(Html("<i>") + "x") == "&lt;i&gt;x"
    assert join(["<", Html("<br>")], ", ") == "&lt;, <br>"


@given(st.lists(st.lists(HOSTILE, min_size=2, max_size=2), max_size=3), HOSTILE)
def test_a_table_shows_every_cell_in_a_cell_of_its_own(rows: list[list[str]], caption: str) -> None:
    parsed = Parsed(table(["a", "b"], rows, caption=caption))
    assert parsed.elements.count("td") == parsed.elements.count("bdi") == 2 * len(rows)
    assert parsed.text == visible(caption) + "ab" + "".join(visible(cell) for row in rows for cell in row)


def test_numbers_stand_in_columns() -> None:
    assert '<td class="gk-number">3</td>' in table(["n"], [[3]])
    assert "<td><bdi>True</bdi></td>" in table(["b"], [[True]])


def test_a_fold_and_a_frame_are_named() -> None:
    assert fold("more", "<x>") == '<details class="gk-fold"><summary>more</summary>&lt;x&gt;</details>'
    assert framed("body", label='"x"').endswith('<section class="gk" aria-label="&quot;x&quot;">body</section>')


def test_trimmed_text_says_how_much_is_missing() -> None:
    assert trimmed("abc", 3) == ("abc", "")
    assert trimmed("a" * 12_345, 300) == ("a" * 300, "… 12,045 more characters, not shown")


# --- the style sheet ------------------------------------------------------------------------------------------------


def test_the_style_sheet_cannot_end_early_and_loads_nothing() -> None:
    assert not re.search(r"</|@import|url\(", style_sheet())


@pytest.mark.parametrize(("theme", "background"), [(0, "#ffffff"), (1, "#111111"), (2, "#111111")])
def test_every_ink_can_be_read_on_its_background(theme: int, background: str) -> None:
    """WCAG AA asks for 4.5 to 1. The first set of colours is for light themes, the other two for dark ones."""
    blocks = re.findall(r"--gk-quiet: [^}]+", style_sheet())
    assert len(blocks) == 3
    inks = dict(re.findall(r"--gk-(\w+): (#[0-9a-f]{6})", blocks[theme]))
    assert set(inks) == {"quiet", "accent", "good", "bad", "mask"}
    assert {
        name: round(contrast(ink, background), 1) for name, ink in inks.items() if contrast(ink, background) < 4.5
    } == {}


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
