from typing import Any

import pandas as pd
import pytest

from gymkit.frames.cells import ARRAYS, MOMENT, flag, integer, number, text

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (7, 7),
        (2**53 + 1, 2**53 + 1),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, None),
        (3.0, 3),
        (3.5, None),
        (2.0**60, None),
        (True, None),
        ("7", None),
        (NAN, None),
        (INFINITY, None),
        (None, None),
        ([1], None),
    ],
)
def test_integers_are_exact_or_not_there(value: Any, cell: int | None) -> None:
    assert integer(value) == cell


@pytest.mark.parametrize(
    ("value", "cell"),
    [(0, 0.0), (0.5, 0.5), (True, None), ("0.5", None), (NAN, None), (INFINITY, None), (10**400, None), ({}, None)],
)
def test_a_number_is_finite_and_never_a_boolean(value: Any, cell: float | None) -> None:
    assert number(value) == cell


@pytest.mark.parametrize(
    ("value", "cell"), [(True, True), (False, False), (1, True), (0.0, False), (2, None), ("true", None), (None, None)]
)
def test_flags(value: Any, cell: bool | None) -> None:
    assert flag(value) is cell


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("as it is", "as it is"),
        (None, None),
        (7, "7"),
        (True, "true"),
        ({"a": [1]}, '{"a":[1]}'),
        ("\ud800", "\U0010d800"),
    ],
)
def test_what_is_not_text_becomes_json(value: Any, cell: str | None) -> None:
    assert text(value) == cell


def test_moments_are_microseconds_in_utc() -> None:
    moments = pd.Series(ARRAYS[MOMENT]([1767225600.123456, None, 1e300, -1, "now"]))
    assert str(moments.dtype) == "datetime64[us, UTC]"
    assert moments[0] == pd.Timestamp("2026-01-01T00:00:00.123456Z")
    assert moments.isna().tolist() == [False, True, True, True, True]


@pytest.mark.parametrize("dtype", ARRAYS)
@pytest.mark.parametrize("values", [[], [None], [None, None, NAN]])
def test_an_array_without_values_has_its_dtype(dtype: str, values: list[Any]) -> None:
    values = [None if dtype == "string" else value for value in values]
    array = pd.Series(ARRAYS[dtype](values))
    assert str(array.dtype) == dtype
    assert array.isna().all()


def test_integers_above_2_53_survive_beside_a_gap() -> None:
    column = pd.Series(ARRAYS["Int64"]([2**53 + 1, None]))
    assert column[0] == 2**53 + 1
    assert column[1] is pd.NA
