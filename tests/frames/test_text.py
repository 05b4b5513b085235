import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.frames.text import original, storable

ANY = st.text(st.characters(codec=None, categories=None, exclude_categories=()), max_size=12)
ODD = st.text(
    "a\ud800\udbff\udc00\udfff\U0010d7ff\U0010d800\U0010dfff\U0010e000\U0010fffd\U0010fffe😀\u2028", max_size=12
)


@given(ANY | ODD)
def test_what_is_stored_is_utf8_and_turns_back_into_what_was_sent(text: str) -> None:
    stored = storable(text)
    stored.encode()
    assert original(stored) == text


@given(ANY | ODD, ANY | ODD)
def test_different_texts_stay_different(one: str, other: str) -> None:
    assert (storable(one) == storable(other)) == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "naïve 日本語 😀",
        "line\u2028separator\u0085next",
        r'{"emoji": "\ud83d\ude00"}',
        "<b>&amp;\x1b[31m\x00",
    ],
)
def test_ordinary_text_is_not_touched(text: str) -> None:
    assert storable(text) == text == original(text)


def test_arguments_with_half_a_pair_are_still_json() -> None:
    stored = storable('{"city": "\ud83d"}')
    assert original(json.loads(stored)["city"]) == "\ud83d"
