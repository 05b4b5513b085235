import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gymkit.frames import failures, masks, parquet, rewards, tasks, tool_calls, trajectories
from gymkit.frames.column import Column
from gymkit.frames.records import Records
from gymkit.frames.text import original
from tests.frames.samples import Row, call, message, nemo, nemo_failure, our_failure, ours, output, planned, write_run

ODD = st.text("a\ud800\udfff\u2028\u0085\x00\n😀\U0010d800\U0010fffd", max_size=8)
# What JSON can carry: two halves side by side are one character there.
TEXT = (st.text(max_size=8) | ODD).map(lambda text: json.loads(json.dumps(text)))
NUMBER = st.integers(-(2**63), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
SCALAR = st.none() | st.booleans() | NUMBER | TEXT
JSON = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2))
REWARD = st.none() | st.floats(-1, 1) | TEXT | st.just(2**60)
FIELDS = st.fixed_dictionaries({}, optional={"level": SCALAR, "note": TEXT, "big": st.integers(2**53, 2**62)})


@st.composite
def results(draw: st.DrawFn) -> list[Row]:
    rows = []
    for task in range(draw(st.integers(0, 3))):
        items = [call("c", draw(TEXT), draw(TEXT)), output("c", draw(TEXT | JSON)), message(draw(TEXT))]
        verdict = {"mask_sample": draw(st.booleans() | st.none()), "failure_kind": draw(st.none() | TEXT)}
        extra = {"extra": draw(JSON), "failure_reason": draw(st.none() | TEXT)}
        make = draw(st.sampled_from([nemo, ours]))
        rows.append(make(task, items=items, reward=draw(REWARD), **verdict, **extra))
    return rows


def again(frame: pd.DataFrame, columns: tuple[Column[Any], ...], folder: Path) -> pd.DataFrame:
    parquet.write(frame, folder / "frame.parquet")
    return parquet.read(folder / "frame.parquet", columns)


def frames(records: Records) -> list[tuple[pd.DataFrame, tuple[Column[Any], ...]]]:
    grains: list[Any] = [rewards, masks, trajectories, tool_calls, failures]
    return [(tasks.frame(records.tasks()), tasks.COLUMNS)] + [(grain.frame(records), grain.COLUMNS) for grain in grains]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(results(), st.lists(FIELDS, max_size=3), st.lists(TEXT, max_size=2))
def test_json_to_frames_to_parquet_to_frames(rows: list[Row], fields: list[Row], errors: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = [planned(task, **given_fields) for task, given_fields in enumerate(fields)]
        failed = [
            make(9, attempt, error=text) for text in errors for attempt, make in enumerate([nemo_failure, our_failure])
        ]
        records = Records(write_run(folder, rows, failed, plan))
        for frame, columns in frames(records):
            pd.testing.assert_frame_equal(again(frame, columns, folder), frame)
        for row in rows:
            assert records.record(row["_ng_task_index"], 0) == row
            (said, asked) = (trajectories.frame(records, [(row["_ng_task_index"], 0)]), row["response"]["output"])
            assert original(said.text.iloc[-1]) == asked[2]["content"][0]["text"]
            assert original(said.arguments.iloc[1]) == asked[0]["arguments"]
        assert not [problem for problem in records.problems if "does not plan" not in problem.reason]


def test_odd_names_of_columns_survive(tmp_path: Path) -> None:
    rows = [nemo(0, reward_components={"\ud800": 1.0, "a\u2028b": 0.5, "": 0.25})]
    frame = rewards.frame(Records(write_run(tmp_path, rows)))
    assert frame.columns[-3:].tolist() == ["reward.", "reward.a\u2028b", "reward.\U0010d800"]
    pd.testing.assert_frame_equal(again(frame, rewards.COLUMNS, tmp_path), frame)


def test_an_empty_frame_keeps_its_categories(tmp_path: Path) -> None:
    empty = rewards.frame(Records(write_run(tmp_path)))
    back = again(empty, rewards.COLUMNS, tmp_path)
    pd.testing.assert_frame_equal(back, empty)
    assert back.status.cat.categories.tolist() == list(rewards.STATUSES)


def test_pandas_alone_reads_the_file_too(tmp_path: Path) -> None:
    frame = rewards.frame(
        Records(write_run(tmp_path, [ours(0), ours(1, mask_sample=True, failure_kind="judge_failed")]))
    )
    parquet.write(frame, tmp_path / "frame.parquet")
    back = pd.read_parquet(tmp_path / "frame.parquet")
    names = frame.columns.drop("started_at")  # pandas 2 alone reads it in nanoseconds
    assert back[names].dtypes.astype(str).equals(frame[names].dtypes.astype(str))
    assert back.status.tolist() == ["scored", "masked"]


def test_a_cell_of_20_megabytes(tmp_path: Path) -> None:
    text = "0123456789" * 2_000_000
    frame = trajectories.frame(Records(write_run(tmp_path, [ours(0, items=[message(text)])])))
    assert frame.text.iloc[-1] == text
    assert again(frame, trajectories.COLUMNS, tmp_path).text.iloc[-1] == text
