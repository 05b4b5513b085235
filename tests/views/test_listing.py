from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.views.listing import Filter, Listing, matching
from tests.views.runs import rewards

KEYS = ("task_index", "rollout_index")
RUN = rewards(4, 2)  # scored 0, masked, failed, missing, scored 1, masked, failed, missing


def steps(listing: Listing) -> list[int]:
    return [row["steps"] for row in listing.rows(0, 100)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status == 'scored'", [0, 4]),
        ("reward < 1", [0]),  # what has no reward is not below 1
        ("not reward < 1", [4]),  # nor is it not below 1
        ("failure_kind.isna() and task_index > 1", [4, 7]),
        ("  status in ['failed',\n 'masked']  ", [1, 2, 5, 6]),
        ("task_id.str.endswith('3')", [6, 7]),
    ],
)
def test_a_query_leaves_the_rows_for_which_it_holds(query: str, found: list[int]) -> None:
    listing = Listing(RUN, KEYS)
    listing.narrow(Filter(query))
    assert steps(listing) == found
    assert list(listing.matches["steps"]) == found


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("rewrd < 1", "there is no column rewrd; did you mean 'reward'?"),
        ("status == scored", "there is no column scored.*text wants quotes"),
        ("reward <", "not an expression"),
        ("reward + 1", "true or false for each row"),
        ("steps = 1", "true or false for each row"),
        ("True", "true or false for each row"),
        ("@limit > 1", "@limit is a variable of a notebook"),
        ("reward > 'a'", "cannot be evaluated"),
        ("__import__('os').getcwd()", "cannot be evaluated|not an expression"),
    ],
)
def test_a_query_that_cannot_be_evaluated_gets_one_sentence_and_changes_nothing(query: str, sentence: str) -> None:
    listing = Listing(RUN, KEYS)
    listing.narrow(Filter("steps < 3"))
    with pytest.raises(ConfigError, match=sentence) as caught:
        listing.narrow(Filter(query))
    assert "\n" not in str(caught.value)
    assert steps(listing) == [0, 1, 2]


@given(st.text(max_size=20) | st.text(st.sampled_from("reward status <>='@`()[]._+-\\\n0"), max_size=20))
def test_whatever_is_typed_gives_a_mask_or_a_sentence(query: str) -> None:
    try:
        assert len(matching(RUN, query)) == len(RUN)
    except ConfigError as error:
        assert re.fullmatch(r".+", str(error))


def test_facets_narrow_together_and_a_missing_value_is_a_value_too() -> None:
    listing = Listing(RUN, KEYS)
    listing.narrow(Filter(among=(("status", frozenset(["scored", "missing"])), ("failure_kind", frozenset([""])))))
    assert steps(listing) == [0, 3, 4, 7]
    listing.narrow(Filter("steps > 0", between=(("reward", 0.5, 1.0),)))
    assert steps(listing) == [4]
    assert listing.counts("status") == {"scored": 2, "masked": 2, "failed": 2, "missing": 2}
    assert listing.counts("failure_kind") == {"": 4, "judge_failed": 2, "timeout": 2}


def test_rows_without_a_value_come_last_whichever_way_it_is_sorted() -> None:
    listing = Listing(RUN, KEYS)
    listing.sort("reward")
    assert steps(listing) == [0, 4, 1, 2, 3, 5, 6, 7]
    listing.sort("reward", descending=True)
    assert steps(listing) == [4, 0, 1, 2, 3, 5, 6, 7]
    listing.sort("status")  # a category has an order of its own
    assert steps(listing) == [0, 4, 1, 5, 2, 6, 3, 7]
    listing.narrow(Filter("steps > 3"))
    assert steps(listing) == [4, 5, 6, 7]
    listing.sort(None)
    assert steps(listing) == [4, 5, 6, 7]
    with pytest.raises(ConfigError, match="no column 'stauts'; did you mean 'status'"):
        listing.sort("stauts")


def test_values_of_several_types_are_sorted_by_their_texts() -> None:
    listing = Listing(RUN.assign(odd=pd.Series(["b", 3, None, "a", 1, 2, 9, "c"], dtype=object)), KEYS)
    listing.sort("odd")
    assert steps(listing) == [4, 5, 1, 6, 3, 0, 7, 2]


def test_rows_are_named_by_their_keys() -> None:
    listing = Listing(RUN, KEYS)
    assert listing.position((2, 1)) == 5
    listing.narrow(Filter("steps > 3"))
    assert listing.place(5) == 1
    assert listing.at(1) == 5
    assert listing.place(0) is None
    with pytest.raises(ConfigError, match="no row with task_index 9, rollout_index 0 among the 8"):
        listing.position((9, 0))
    with pytest.raises(ConfigError, match="no column 'task_index'"):
        Listing(pd.DataFrame({"reward": [1.0]}), KEYS)


def test_the_index_of_the_frame_is_the_users() -> None:
    """A boolean mask of the user's own frame fits what comes out."""
    listing = Listing(RUN.set_index(RUN["steps"] * 10), KEYS)
    listing.sort("reward", descending=True)
    listing.narrow(Filter("reward >= 0 and index > 0"))
    assert list(listing.matches.index) == [40]
