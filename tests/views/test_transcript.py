from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.frames import tool_calls, trajectories
from gymkit.frames.records import Records
from gymkit.views.html import visible
from gymkit.views.transcript import Transcript
from tests.views.parsed import Parsed
from tests.views.test_html import HOSTILE

COLUMNS = ["kind", "role", "origin", "step", "name", "text", "arguments", "call_id", "executed"]


def frame(*items: dict[str, Any], **ids: int) -> pd.DataFrame:
    """A ``trajectories`` frame; object columns, since a test also writes what Arrow cannot hold."""
    rows = [
        {"task_index": 3, "rollout_index": 1, "attempt": 0, **ids, "item_index": i, **it} for i, it in enumerate(items)
    ]
    return pd.DataFrame(rows, columns=["task_index", "rollout_index", "attempt", "item_index", *COLUMNS], dtype=object)


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "message", "role": role, "text": text, **more}


def asked(name: str, call_id: str, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"kind": "function_call", "name": name, "call_id": call_id, "arguments": arguments, **more}


def answered(call_id: str, text: str) -> dict[str, Any]:
    return {"kind": "function_call_output", "call_id": call_id, "text": text}


CONVERSATION = frame(
    said("user", "Add 1,\nthen say it.", origin="task"),
    {"kind": "reasoning", "text": "A tool will do.", "origin": "agent", "step": 1},
    asked("increment_counter", "c1", '{"count": 1}', step=1, executed=True),
    asked("verify", "c2", step=1, executed=True),
    answered("c1", '{"success": true}'),
    answered("c2", '{"error": "no such tool"}'),
    said("assistant", "It is 1.", origin="agent", step=2),
)
CALLS = pd.DataFrame(
    [
        {"task_index": 3, "rollout_index": 1, "item_index": 3, "error": "undeclared", "seconds": 0.0004},
        {"task_index": 4, "rollout_index": 1, "item_index": 2, "error": "failed", "seconds": 9.0},
    ]
)

TEXT = """\
task 3, rollout 1, attempt 0: 5 entries, 2 tool calls, 1 of them with an error

user (part of the task)
    Add 1,
    then say it.

reasoning (step 1)
    A tool will do.

increment_counter (tool call, run by gymkit, step 1)
    {"count": 1}
    → {"success": true}

verify (tool call, run by gymkit, 0.4 ms, step 1, ✗ asked for a tool that this task does not have)
    {}
    → {"error": "no such tool"}

assistant (step 2)
    It is 1."""


def test_as_text_calls_stand_with_their_outputs_and_errors() -> None:
    assert str(Transcript(CONVERSATION, CALLS)) == TEXT
    assert repr(Transcript(CONVERSATION)) == "<Transcript task 3, rollout 1, attempt 0: 5 entries, 2 tool calls>"


def test_as_html_the_same_things_in_the_same_order_without_anything_that_runs() -> None:
    parsed = Parsed(Transcript(CONVERSATION, CALLS).html())
    assert parsed.is_inert
    things = [
        "Add 1,\nthen say it.",
        "A tool will do.",
        '{"count": 1}',
        '{"success": true}',
        "✗ asked",
        "no such",
        "It is 1.",
    ]
    positions = [parsed.text.index(thing) for thing in things]
    assert positions == sorted(positions)
    assert re.search(r"<details[^>]*><summary>15 characters", Transcript(CONVERSATION).html()), "reasoning is folded"


def test_a_cell_gets_both() -> None:
    bundle = Transcript(CONVERSATION, CALLS)._repr_mimebundle_()
    assert bundle["text/plain"] == TEXT
    assert bundle["text/html"] == Transcript(CONVERSATION, CALLS).html()


def test_calls_of_one_id_are_answered_in_order_and_what_has_no_partner_says_so() -> None:
    odd = frame(
        asked("first", "same"), asked("second", "same"), answered("same", "1"), answered("same", "2"),
        asked("late", "z"), answered("nobody", "orphan"), asked("silent", "q"), answered("q", ""),
    )  # fmt: skip
    found = [(piece.name, piece.text) for piece in Transcript(odd).pieces]
    assert found == [("first", "1"), ("second", "2"), ("late", None), (None, "orphan"), ("silent", "")]
    text = str(Transcript(odd))
    assert "late (tool call)\n    {}\n    (no output)" in text
    assert "an output without its call\n    → orphan" in text
    assert "no output" in Transcript(odd).html()


def test_an_output_before_its_call_is_not_taken_for_its_answer() -> None:
    pieces = Transcript(frame(answered("c", "early"), asked("tool", "c"))).pieces
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("function_call_output", "early"),
        ("function_call", None),
    ]


def test_kinds_nobody_knows_and_empty_things_are_shown_too() -> None:
    text = str(
        Transcript(frame({"kind": "web_search_call"}, said("oracle", ""), {"kind": "reasoning"}, {"kind": None}))
    )
    assert text.split("\n\n")[1:] == ["web_search_call", "oracle", "reasoning", "item"]


def test_rows_of_two_rollouts_are_refused_with_the_way_to_choose() -> None:
    both = pd.concat([frame(said("user", "a")), frame(said("user", "b"), rollout_index=2)])
    with pytest.raises(ConfigError, match=r"of 2 rollouts.*query\('task_index == 3 and rollout_index == 1'\)"):
        Transcript(both)


def test_a_frame_with_the_texts_alone_and_one_without_rows_will_do() -> None:
    assert (
        str(Transcript(pd.DataFrame({"role": ["user"], "text": ["hi"]})))
        == "conversation: 1 entry, 0 tool calls\n\nuser\n    hi"
    )
    assert str(Transcript(frame())) == "conversation: 0 entries, 0 tool calls"


def test_the_frames_of_a_run_fit(tmp_path: Any) -> None:
    row = (
        '{"_ng_task_index":0,"_ng_rollout_index":0,"reward":1.0,"responses_create_params":{"input":"Look."},"response":'
        '{"output":[{"type":"function_call","call_id":"c","name":"look","arguments":"{}"},'
        '{"type":"function_call_output","call_id":"c","output":"half \\ud800"}]},'
        '"gymkit":{"steps":1,"calls":[{"item":1,"step":1,"error":"failed","seconds":0.5}]}}\n'
    )
    (tmp_path / "r.jsonl").write_text(row)
    records = Records(tmp_path / "r.jsonl")
    text = str(Transcript(trajectories.frame(records), tool_calls.frame(records)))
    assert "user (part of the task)\n    Look." in text
    assert "look (tool call, run by gymkit, 0.5 s, step 1, ✗ the tool answered with an error)" in text
    assert "→ half ⟨U+D800⟩" in text


# --- hostile texts --------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(("role", "text", "name", "arguments", "output", "kind"), HOSTILE)))
def test_whatever_an_agent_writes_is_shown_and_nothing_of_it_runs(hostile: dict[str, str]) -> None:
    transcript = Transcript(
        frame(
            said(hostile["role"], hostile["text"]),
            {"kind": "reasoning", "text": hostile["text"]},
            asked(hostile["name"], hostile["text"], hostile["arguments"]),
            answered(hostile["text"], hostile["output"]),
            {"kind": hostile["kind"], "text": hostile["text"]},
        )
    )
    parsed = Parsed(transcript.html())
    assert parsed.is_inert
    assert all(visible(text) in parsed.text for text in hostile.values())
    text = str(transcript)
    assert visible(text) == text


def test_no_text_can_pretend_to_be_the_next_entry() -> None:
    forged = "done\n\nassistant (step 9)\n    I passed."
    assert "\nassistant (step 9)" not in str(Transcript(frame(said("user", forged))))


# --- size -----------------------------------------------------------------------------------------------------------


def test_long_texts_are_folded_under_their_beginning() -> None:
    html = Transcript(frame(asked("log", "c"), answered("c", "line\n" * 500))).html()
    assert re.search(r"<details[^>]*><summary>line line .* … \(2,500 characters\)</summary>", html)


def test_a_huge_conversation_stays_small_and_says_what_is_missing() -> None:
    huge = frame(*[said("user", f"number {index}: " + "x" * 30_000) for index in range(1_000)])
    transcript = Transcript(huge)
    html, text = transcript.html(), str(transcript)
    assert len(html) < 1_000_000
    assert len(text) < 1_000_000
    for shown in (html, text):
        assert "… 600 entries are not shown here" in shown
        assert "number 0: " in shown
        assert "number 999: " in shown
        assert "number 500: " not in shown
        assert "more characters, not shown" in shown


def test_what_is_shown_can_be_chosen() -> None:
    items = [said("user", f"number {index}") for index in range(10)]
    text = str(Transcript(frame(*items), max_items=4, max_chars=5))
    assert text.count("\nuser\n") == 4
    assert "    numbe\n    … 3 more characters, not shown" in text
