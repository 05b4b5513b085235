"""The browser of a run through its traits, as a front end moves them; ``tests/browser`` has the front end itself."""

from __future__ import annotations

import re
import time
from typing import Any

import pandas as pd
import pytest

from gymkit.errors import ConfigError, StoreError
from gymkit.views.browser import Browser
from gymkit.views.transcript import Transcript
from tests.views.parsed import Parsed
from tests.views.runs import Store, rewards, trajectory
from tests.views.touch import Touch

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror=alert(1)>\x1b[31m\u202e\u200b"


def browse(
    frame: pd.DataFrame | None = None, store: Store | None = None, **options: Any
) -> tuple[Browser, Touch, Store]:
    store = store or Store()
    frame = rewards(20, 2) if frame is None else frame
    view = Browser(frame, conversation=store.conversation, record=store.record, **options)
    return view, Touch(view), store


def selected(view: Browser) -> list[tuple[int, int]]:
    return [(row.task_index, row.rollout_index) for row in view.selection.itertuples()]


def test_it_opens_with_a_page_of_rows_and_the_first_conversation_and_asks_for_no_other() -> None:
    view, touch, store = browse()
    assert repr(view) == "<Browser rollouts: 40 of 40 rows>"
    assert store.asked == [(0, 0)]
    assert "I am 0, 0" in touch.text("body")
    assert touch.of_class("gk-rows").value.count("data-row") == 25
    assert touch.text("message") == "rollouts · 40 rows"


def test_a_row_is_opened_from_the_front_end_and_from_the_next_cell() -> None:
    view, touch, store = browse()
    touch.send(row=3)
    assert selected(view) == [(1, 1)]
    assert "task 1 · rollout 1" in touch.text("head")
    view.select(19, 1)
    assert "I am 19, 1" in touch.text("body")
    assert 'data-row="39" aria-selected="true"' in touch.of_class("gk-rows").value
    view.selection = view.matches.query("task_index == 7")
    assert selected(view) == [(7, 0), (7, 1)]
    assert "task 7 · rollout 0" in touch.text("head")
    assert touch.text("message") == "rollouts · 40 rows · 2 marked"
    assert store.asked == [(0, 0), (1, 1), (19, 1), (7, 0)]
    with pytest.raises(ConfigError, match="no row with task_index 99, rollout_index 0"):
        view.select(99)


def test_rows_are_stepped_turned_and_marked() -> None:
    view, touch, _ = browse()
    assert touch.of_label("‹ previous").disabled
    touch.click("next ›")
    assert selected(view) == [(0, 1)]
    touch.click("rows ›")
    assert touch.of_class("gk-rows").value.count("data-row") == 15
    assert touch.of_label("rows ›").disabled
    assert selected(view) == [(0, 1)]
    touch.send(mark=30)
    touch.send(mark=31)
    touch.send(mark=30)
    assert selected(view) == [(15, 1)]
    touch.send(row=39)
    assert touch.of_label("next ›").disabled
    touch.send(row=40)  # a row that has gone meanwhile
    assert "task 19 · rollout 1" in touch.text("head")


def test_a_filter_narrows_and_a_wrong_one_says_why() -> None:
    view, touch, _ = browse()
    query = touch.of_class("gk-query")
    query.value = "reward == 1"
    assert list(view.matches["reward"]) == [1.0, 1.0]
    assert touch.text("message") == "rollouts · 2 of 40 rows match"
    assert selected(view) == [(2, 0)]
    query.value = "rewrd == 1"
    assert "✗ there is no column rewrd; did you mean 'reward'?" in touch.text("message")
    assert len(view.matches) == 2
    query.value = "reward > 5"
    assert touch.text("rows").endswith("steps")
    assert "No row matches" in touch.text("body")
    assert view.selection.empty
    touch.click("Clear")
    assert len(view.matches) == 40
    assert query.value == ""
    assert not view.selection.empty


def test_the_filter_can_be_set_from_a_cell_and_is_shown() -> None:
    view, touch, _ = browse(query="status == 'failed'")
    assert touch.of_class("gk-query").value == "status == 'failed'"
    assert set(view.matches["status"]) == {"failed"}
    with pytest.raises(ConfigError, match="not an expression"):
        view.query = "reward <"
    assert view.query == "status == 'failed'"
    view.select(0, 0)  # the filter leaves it out, so the filter goes
    assert view.query == touch.of_class("gk-query").value == ""
    assert selected(view) == [(0, 0)]


def test_facets_say_how_many_there_are_and_narrow() -> None:
    view, touch, _ = browse()
    touch.of_label("failed 10").value = False
    touch.of_label("missing 10").value = False
    assert set(view.matches["status"]) == {"scored", "masked"}
    [kinds] = [widget for widget in touch.widgets if "any failure kind" in str(getattr(widget, "options", ""))]
    assert [label for label, _ in kinds.options] == [
        "any failure kind",
        "none (20)",
        "judge_failed (10)",
        "timeout (10)",
    ]
    kinds.value = "judge_failed"
    assert set(view.matches["status"]) == {"masked"}
    touch.click("Clear")
    assert len(view.matches) == 40
    touch.of_label("reward").value = (0.5, 1.0)
    assert sorted(set(view.matches["reward"])) == [0.5, 0.75, 1.0]


def test_a_heading_sorts_and_sorts_the_other_way() -> None:
    view, touch, _ = browse()
    touch.send(sort="reward")
    touch.send(sort="reward")
    assert view.matches["reward"].iloc[0] == 1.0
    assert 'aria-sort="descending"' in touch.of_class("gk-rows").value
    view.sort(None)
    assert list(view.matches["steps"]) == list(range(40))


# --- what is read ---------------------------------------------------------------------------------------------------


def test_every_status_is_explained() -> None:
    store = Store(failure_reason="no verdict", error="no answer in 30 s", reward_components={"style": 0.25})
    view, touch, _ = browse(store=store, source="rollouts")
    assert "scored reward 0" in touch.text("head")
    assert "reward components: style 0.25" in touch.text("head")
    assert "verifier and task: verifier_note" in touch.text("head")
    assert touch.text("head").endswith("rollouts.conversation(0, 0) copy")
    view.select(0, 1)
    assert "its number, 0.5, is no measurement of the agent, so no mean counts it. Kind: judge_failed." in touch.text(
        "head"
    )
    assert "Reason: no verdict" in touch.text("head")
    view.select(1, 0)
    assert "there is no result, so there is no reward. Kind: timeout." in touch.text("head")
    assert "no answer in 30 s" in touch.text("head")
    view.select(1, 1)
    assert "planned, and no result with a reward is on disk" in touch.text("head")


def test_costs_cuts_and_failed_attempts_are_told() -> None:
    costs = {"tool_calls": 3, "total_tokens": 1_500, "input_tokens": 1_000, "output_tokens": 500, "seconds": 2.5}
    frame = rewards(1, 1, termination_reason="max_steps", attempt=1, **costs)
    attempts = pd.DataFrame({"attempt": [0], "failure_class": "error", "failure_kind": "timeout", "message": HOSTILE})
    _view, touch, _ = browse(frame, failures=lambda task, rollout: attempts)
    head = touch.text("head")
    assert "0 steps · 3 tool calls · 1,500 tokens (1,000 input, 500 output) · 2.5 s · attempt 1" in head
    assert "cut at the allowed number of steps" in head
    assert "failed attempts: 1" in head
    assert "<script>window.hacked" in head


def test_an_attempt_without_a_conversation_shows_what_was_asked() -> None:
    def none(task: int, rollout: int) -> Transcript:
        return Transcript(trajectory(task, rollout))

    asked = {"responses_create_params": {"input": [{"role": "user", "content": "Add 3."}]}}
    view = Browser(rewards(1, 1), conversation=none, record=lambda task, rollout: asked)
    assert "userpart of the taskAdd 3." in Touch(view).text("body").replace(" part", "part")


def test_the_row_on_disk_is_shown_when_it_is_asked_for() -> None:
    _, touch, _ = browse(store=Store(note=HOSTILE))
    [ways] = [widget for widget in touch.widgets if "Raw JSON" in getattr(widget, "options", ())]
    ways.value = "Raw JSON"
    assert '"verifier_note": "seen twice"' in touch.text("body")
    assert "<script>window.hacked" in touch.text("body")
    touch.send(row=1)
    assert '"verifier_note"' in touch.text("body")


def test_what_cannot_be_read_is_said_in_the_pane() -> None:
    def broken(task: int, rollout: int) -> Transcript:
        raise StoreError("results/r.jsonl:7 cannot be read whole")

    view = Browser(rewards(2, 1), conversation=broken, record=Store().record)
    touch = Touch(view)
    assert "✗ results/r.jsonl:7 cannot be read whole" in touch.text("body")
    touch.click("next ›")
    assert selected(view) == [(1, 0)]


def test_long_conversations_are_turned_page_by_page() -> None:
    _, touch, store = browse(store=Store(tuple(f"line {index}" for index in range(100))))
    assert "entries 1 to 40 of 101 · page 1 of 3" in [
        Parsed(w.value).text for w in touch.widgets if hasattr(w, "value") and "page 1" in str(w.value)
    ]
    assert touch.of_label("‹ earlier").disabled
    touch.click("later ›")
    touch.click("later ›")
    assert "line 99" in touch.text("body")
    assert touch.of_label("later ›").disabled
    assert store.asked == [(0, 0)]
    touch.click("next ›")
    assert "I am 0, 1" in touch.text("body")


# --- size, hostility, and what stays --------------------------------------------------------------------------------


def test_100_000_rollouts_open_in_under_a_second_and_the_state_stays_small() -> None:
    frame = rewards(25_000, 4)
    store = Store(("x" * 100_000_000,))
    started = time.perf_counter()
    view, touch, _ = browse(frame, store=store)
    seconds = time.perf_counter() - started
    assert seconds < 1.0
    assert touch.state_bytes < 200_000
    touch.send(row=99_999)
    touch.click("later ›")
    touch.of_class("gk-query").value = "reward > 0.5"
    assert len(view.matches) == 10_000
    assert touch.state_bytes < 200_000


def test_the_state_stays_small_whatever_is_in_the_run() -> None:
    """Hidden characters take eighty bytes each; names, fields and messages can be as long as texts."""
    bad = "\u202e<\U0010d800" * 50_000  # the last is how a frame holds a lone surrogate
    frame = rewards(20, 2, task_id=bad).astype({"failure_kind": object}).assign(failure_kind=bad)
    attempts = pd.DataFrame({"attempt": range(50), "failure_class": bad, "failure_kind": bad, "message": bad})
    fields = {f"{bad}{number}": bad for number in range(50)}
    store = Store((bad,) * 50, failure_reason=bad, error=bad, reward_components=fields, **fields)
    view, touch, _ = browse(frame, store=store, failures=lambda task, rollout: attempts, title=bad)
    for row in (0, 1, 2, 3):
        touch.send(row=row)
        assert touch.state_bytes < 200_000
    assert len(view._repr_html_().encode()) < 200_000


def test_hostile_runs_are_shown_and_never_interpreted() -> None:
    frame = rewards(2, 2, task_id=HOSTILE).assign(failure_kind=HOSTILE)
    store = Store((HOSTILE,), failure_reason=HOSTILE, **{HOSTILE: HOSTILE})
    view, touch, _ = browse(frame, store=store, title=HOSTILE, source=HOSTILE)
    for name in ("rows", "head", "body", "message"):
        parsed = Parsed(touch.of_class(f"gk-{name}").value)
        assert not {"script", "img"} & set(parsed.elements)
        assert not any(re.match("on|src|href", attribute) for attribute, _ in parsed.attributes)
    static = Parsed(view._repr_html_())
    assert static.is_inert
    assert "<script>window.hacked" in static.text
    assert "\x1b" not in repr(view)


def test_a_saved_notebook_has_the_first_page_and_the_open_conversation() -> None:
    view, touch, _ = browse(title="counter × agent")
    touch.send(row=1)
    parsed = Parsed(view._repr_html_())
    assert "counter × agent 40 rollouts: 10 scored, 10 masked, 10 failed, 10 missing" in parsed.text
    assert "25 of 40 rollouts" in parsed.text
    assert "is no measurement of the agent" in parsed.text
    assert "I am 0, 1" in parsed.text


def test_without_rows_there_is_still_a_view() -> None:
    view, touch, store = browse(rewards(0, 0))
    assert view.selection.empty
    assert "No row matches" in touch.text("body")
    assert store.asked == []
    assert "0 rollouts" in Parsed(view._repr_html_()).text
    with pytest.raises(ConfigError, match="no column 'task_index'"):
        browse(pd.DataFrame({"reward": [1.0]}))
