from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.frames.decode import load, shape
from gymkit.frames.rows import FailureRow, Item, Part, Planned, Row, Transcript, Verdict
from gymkit.wire import codec

TEXT = st.text(max_size=3) | st.sampled_from(["\ud800", "text", "output", "input"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OUR_KEYS = ("response", "responses_create_params", "gymkit", "agent_ref", "reward", "reward_components", "task_id")
KEYS = st.sampled_from([*OUR_KEYS, "_ng_task_index", "_ng_task_id"])


def test_what_is_no_number_is_read_as_null_and_named() -> None:
    odd: list[str] = []
    assert load(b'{"a":NaN,"b":[-Infinity,1e999],"c":1.5,"d":"NaN"}', odd) == {
        "a": None,
        "b": [None, None],
        "c": 1.5,
        "d": "NaN",
    }
    assert odd == ["NaN", "-Infinity", "1e999"]


@pytest.mark.parametrize("line", [b"", b"{", b'{"a":', b"nonsense", b'"\xff"', b"[" * 5000, b'{"a":NaN'])
def test_what_is_no_json_raises_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        load(line, [])


def test_lone_surrogates_come_through() -> None:
    assert load(b'{"a":"\\ud800"}', []) == {"a": "\ud800"}


@pytest.mark.parametrize("kind", [Row, Verdict, Planned, Transcript, FailureRow])
@given(st.dictionaries(KEYS, JSON, max_size=5))
def test_any_object_has_a_shape(kind: type[msgspec.Struct], row: dict[str, Any]) -> None:
    shaped = shape(kind, row)
    assert isinstance(shaped, kind)
    if "reward" in row and "reward" in kind.__struct_fields__:
        assert shaped.reward == row["reward"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Row, Transcript])
@given(st.dictionaries(KEYS, JSON, max_size=5))
def test_the_slow_way_agrees_with_the_fast_one(kind: type[msgspec.Struct], row: dict[str, Any]) -> None:
    line = codec.dumps(row)
    try:
        fast = msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError:
        return
    assert fast == shape(kind, load(line, []))


def test_what_does_not_fit_is_left_empty_and_the_rest_stays() -> None:
    items = [
        {"type": "message", "content": ["bare", {"text": "part"}, 7]},
        "no item",
        {"type": "message", "content": {"a": 1}},
    ]
    row = shape(Transcript, {"_ng_task_index": 3, "gymkit": "?", "response": {"output": items}})
    assert row.task_index == 3
    assert row.gymkit.calls is None
    assert row.response.output == [
        Item(type="message", content=[Part(text="bare"), Part(text="part"), Part()]),
        Item(),
        Item(type="message", content='{"a":1}'),
    ]
