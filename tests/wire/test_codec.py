from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.wire.codec import dumps, dumps_sorted, loads

any_text = st.text(st.characters())
"""Text of any code points, lone surrogates among them."""

whole = st.integers(min_value=-(2**63), max_value=2**64 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | whole | finite | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_what_json_can_carry_comes_back_the_same(value: Any) -> None:
    back = loads(dumps(value))
    assert back == value
    assert repr(back) == repr(value), "a float stays a float and a whole number stays whole"


@given(json_values)
def test_a_value_is_one_line_that_any_reader_of_json_takes(value: Any) -> None:
    line = dumps(value)
    assert b"\n" not in line and b"\r" not in line
    assert json.loads(line) == value


@pytest.mark.parametrize("text", ["\u2028 \u2029 \x85 \x0b", "\x00", "\ud800", "a\udfffb", "😀", "\ufeff"])
def test_odd_characters_survive_as_value_and_as_key(text: str) -> None:
    assert loads(dumps({text: [text]})) == {text: [text]}


def test_surrogates_written_as_raw_bytes_are_read() -> None:
    assert loads(b'"\xed\xa0\x80"') == "\ud800"


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**64 - 1])
def test_integers_are_exact_up_to_64_bits(number: int) -> None:
    back = loads(dumps([number]))
    assert back == [number] and type(back[0]) is int


@pytest.mark.parametrize("beside", ["", "\\ud800"], ids=["plain", "beside a lone surrogate"])
def test_a_longer_integer_is_read_as_a_float(beside: str) -> None:
    """Both ways of reading agree: a lone surrogate in a line once turned its long integers into exact ones."""
    back = loads(f'[{2**64},-{2**63 + 1},{10**30},"{beside}"]'.encode())
    assert back[:3] == [float(2**64), -float(2**63 + 1), 1e30]
    assert [type(number) for number in back[:3]] == [float, float, float]


def test_a_longer_integer_is_written_in_full() -> None:
    assert dumps([10**30]) == b"[1000000000000000000000000000000]"


@pytest.mark.parametrize("text", [b"NaN", b"[Infinity]", b'{"a":-Infinity}', b"1e400", b"-1e999", b"9" * 400])
def test_numbers_that_json_has_not_are_refused_on_reading(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"is not JSON|too large"):
        loads(text)


@pytest.mark.parametrize("beside", ["", "\ud800"], ids=["plain", "beside a lone surrogate"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_has_not_are_written_as_null(number: float, beside: str) -> None:
    """A NaN beside a lone surrogate once went to disk as ``NaN`` and made the line unreadable."""
    assert loads(dumps({"n": number, "s": beside, "t": "NaN Infinity"})) == {
        "n": None,
        "s": beside,
        "t": "NaN Infinity",
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "line 1 column 1"),
        (b'{"a":1', "column 7"),
        (b'{"a":1}{"a":2}', "column 8"),
        (b"[1,]", "column 4"),
        (b"{'a':1}", "column 2"),
        (b'"\xff"', "byte 1"),
        (b"\xef\xbb\xbf1", "BOM"),
        (b"01", "column 2"),
    ],
)
def test_a_broken_line_is_a_value_error_that_says_where(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        loads(text)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_are_a_value_error(data: bytes) -> None:
    try:
        value = loads(data)
    except ValueError:
        return
    assert loads(dumps(value)) == value


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_deep_nesting_is_a_value_error_both_ways(depth: int) -> None:
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        loads(b"[" * depth + b"]" * depth)
    with pytest.raises(ValueError, match="nested too deeply"):
        dumps(deep)


def test_depth_that_a_conversation_may_have_survives() -> None:
    deep: Any = "core"
    for _ in range(200):
        deep = {"inner": [deep]}
    assert loads(dumps(deep)) == deep


@pytest.mark.parametrize("value", [{1, 2}, object(), b"bytes", {"a": {3}}])
def test_a_type_without_a_place_in_json_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        dumps(value)


@given(st.dictionaries(any_text, json_values), st.randoms(use_true_random=False))
def test_sorted_bytes_do_not_depend_on_the_order_of_keys(value: dict[str, Any], random: Random) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert dumps_sorted(dict(items)) == dumps_sorted(value)
    assert loads(dumps_sorted(value)) == value
