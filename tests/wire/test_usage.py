from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import WireError
from gymkit.wire.usage import sum_usage
from tests.wire.builders import usage


def test_the_sum_of_nothing_is_unknown_and_not_zero() -> None:
    assert sum_usage([]) is None


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_counts_are_added_up(tokens: list[int]) -> None:
    assert sum_usage([usage(count) for count in tokens]) == usage(sum(tokens))


def test_an_unknown_detail_leaves_the_sum_s_detail_unknown() -> None:
    known = usage(2, input_tokens_details={"cached_tokens": 5}, output_tokens_details={"reasoning_tokens": 3})
    unknown = usage(2, output_tokens_details={"reasoning_tokens": None})
    total = sum_usage([known, unknown])
    assert total is not None
    assert total["output_tokens_details"] == {"reasoning_tokens": None}
    assert total["input_tokens_details"] == {"cached_tokens": 5}
    assert total["output_tokens"] == 4


def test_numbers_in_quotes_are_added_as_numbers() -> None:
    assert sum_usage([usage(1, total_tokens="2"), usage(1, input_tokens=1.0)]) == usage(2)


def test_extra_counts_are_not_summed() -> None:
    assert sum_usage([usage(1, cache_write_tokens=9)]) == usage(1)


def test_a_partial_usage_is_refused() -> None:
    with pytest.raises(WireError, match=r"\[1\]\.total_tokens: is missing"):
        sum_usage([usage(), {key: value for key, value in usage().items() if key != "total_tokens"}])
