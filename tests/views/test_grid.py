from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given

from gymkit.views.entry import Budget
from gymkit.views.grid import PAGE_BYTES, ROLLOUTS, Field, Handles, cell, grid, number, present
from gymkit.views.html import visible
from gymkit.views.listing import Listing
from tests.views.parsed import Parsed
from tests.views.runs import rewards
from tests.views.test_html import HOSTILE

ROWS = Listing(rewards(2, 2), ("task_index", "rollout_index")).rows(0, 4)
HANDLES = Handles("v1", total=40, current=11, marked=frozenset([12]), sorted_by="reward", descending=True)


def test_a_table_shows_statuses_in_words_and_nothing_where_nothing_is() -> None:
    fields = present(rewards(2, 2), ROLLOUTS)
    assert [field.label for field in fields] == ["task", "name", "rollout", "status", "reward", "failure", "steps"]
    parsed = Parsed(grid(fields, ROWS, 0, caption="4 rollouts"))
    assert parsed.is_inert
    assert parsed.text.startswith("4 rollouts" + "tasknamerolloutstatusrewardfailuresteps" + "0task/00● scored00")
    assert "0task/01◐ maskedjudge_failed1" in parsed.text


def test_a_column_without_news_is_left_out() -> None:
    frame = rewards(2, 1, termination_reason=["message", "error"], task_id=pd.array(["0", "1"], dtype="string"))
    assert not {"name", "cut by"} & {field.label for field in present(frame, ROLLOUTS)}
    cut = rewards(2, 1, termination_reason=["message", "max_steps"])
    assert "cut by" in {field.label for field in present(cut, ROLLOUTS)}
    assert "reward" in {field.label for field in present(rewards(0, 0), ROLLOUTS)}


def test_handles_are_what_keys_and_screen_readers_need() -> None:
    html = grid(present(rewards(2, 2), ROLLOUTS), ROWS, 10, handles=HANDLES)
    assert 'data-total="40"' in html
    assert html.count("data-row=") == 4
    assert 'id="v1-11" data-row="11" aria-selected="true"' in html
    assert html.count('aria-selected="true"') == 1
    assert 'data-row="12" aria-selected="false" class="gk-marked"' in html
    assert html.count('aria-sort="descending"') == 1
    assert html.count("<button") == 7
    Parsed(html)


def test_a_link_leads_from_the_first_cell() -> None:
    html = grid(ROLLOUTS[:1], ROWS[:1], 0, link=lambda row: f"/rollout/{row['task_index']}?a=1&b=2")
    assert '<td class="gk-number"><a href="/rollout/0?a=1&amp;b=2"><span>0</span></a></td>' in html


@given(HOSTILE)
def test_foreign_cells_are_shown_and_never_interpreted(text: str) -> None:
    for name in ("task_id", "status", "failure_kind"):
        parsed = Parsed(cell(Field(name, name), text, Budget.in_html(10_000, 100_000)))
        assert parsed.is_inert
        assert visible(text) in parsed.text


def test_a_page_of_hostile_cells_stays_small() -> None:
    rows = [{"task_id": "\u202e" * 10_000, "failure_kind": "<" * 10_000}] * 25
    assert len(grid([Field("task_id", ""), Field("failure_kind", "")], rows, 0).encode()) < PAGE_BYTES + 15_000


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1.0, 3, "1"),
        (0.12345, 3, "0.123"),
        (12_345, 0, "12,345"),
        (0.0, 2, "0"),
        (0.0043, 2, "0.004"),
        (-0.0004, 3, "-0.0004"),
    ],
)
def test_numbers_are_short(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text
