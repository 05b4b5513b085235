from pathlib import Path

import pytest

from gymkit.errors import StoreError
from gymkit.frames.records import Records
from gymkit.frames.rows import Row, Transcript
from gymkit.wire import codec
from gymkit.wire.lines import Problem
from tests.frames.samples import (
    conversation,
    message,
    nemo,
    nemo_failure,
    our_failure,
    ours,
    planned,
    write_lines,
    write_run,
)


def reasons(records: Records) -> list[tuple[str, int, str]]:
    return [(problem.path.name, problem.line, problem.reason) for problem in records.problems]


def read(path: Path) -> tuple[list[tuple[int, int]], Records]:
    records = Records(path)
    return [key for key, _, _ in records.rollouts(Row)], records


def test_results_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    keys, records = read(write_run(tmp_path, [nemo(2), nemo(0, 1), ours(0, 0)]))
    assert keys == [(2, 0), (0, 1), (0, 0)]
    assert records.problems == []


def test_blank_torn_and_broken_lines_are_skipped_and_named(tmp_path: Path) -> None:
    whole = codec.dumps(nemo(1))
    lines = [nemo(0), b"\n", b'{"reward": 1.0,\n', b"[1, 2]\n", b'"text"\n', b"\xff\xfe\n", nemo(2), whole[:1000]]
    keys, records = read(write_run(tmp_path, lines))
    assert keys == [(0, 0), (2, 0)]
    assert [(line, reason.partition(":")[0].split(";")[0]) for _, line, reason in reasons(records)] == [
        (2, "blank"),
        (3, reasons(records)[1][2].partition(":")[0]),
        (4, "not a JSON object"),
        (5, "not a JSON object"),
        (6, "not UTF-8"),
        (8, "torn (no line end)"),
    ]
    assert str(records.problems[0]) == f"{records.path}:2: blank; skipped"


def test_a_problem_is_listed_once_however_often_the_file_is_read(tmp_path: Path) -> None:
    records = Records(write_run(tmp_path, [b"\n", nemo(0), nemo(0)]))
    for _ in range(2):
        list(records.rollouts(Row))
    list(records.results(Transcript))
    assert len(records.problems) == 2


def test_a_last_line_without_an_end_counts_when_it_is_whole(tmp_path: Path) -> None:
    keys, records = read(write_run(tmp_path, [nemo(0), codec.dumps(nemo(1))]))
    assert keys == [(0, 0), (1, 0)]
    assert records.problems == []


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_newline_ends_a_line(tmp_path: Path, separator: str) -> None:
    """What ``str.splitlines`` splits on is text: 82 records were once read as 95 that way."""
    row = nemo(0, failure_reason=f"a{separator}b")
    records = Records(write_run(tmp_path, [row, nemo(1)]))
    assert [key for key, _, _ in records.rollouts(Row)] == [(0, 0), (1, 0)]
    assert records.record(0, 0)["failure_reason"] == f"a{separator}b"


def test_a_file_saved_on_windows_reads_the_same(tmp_path: Path) -> None:
    lines = [b"\xef\xbb\xbf" + codec.dumps(nemo(0)) + b"\r\n", codec.dumps(nemo(1)) + b"\r\n"]
    keys, records = read(write_run(tmp_path, lines))
    assert keys == [(0, 0), (1, 0)]
    assert records.record(0, 0)["_ng_task_index"] == 0
    assert records.problems == []


def test_rows_without_an_index_belong_to_no_rollout(tmp_path: Path) -> None:
    lines = [nemo(0) | {"_ng_task_index": bad} for bad in (None, "0", True, 2**70, 0.5)] + [
        nemo(0) | {"_ng_task_index": 4.0}
    ]
    keys, records = read(write_run(tmp_path, lines))
    assert keys == [(4, 0)]
    assert [line for _, line, _ in reasons(records)] == [1, 2, 3, 4, 5]


def test_a_repeated_rollout_is_counted(tmp_path: Path) -> None:
    records = Records(write_run(tmp_path, [nemo(0), nemo(1), nemo(0), nemo(0, reward=0.5)]))
    assert records.record(0, 0)["reward"] == 0.5
    ((name, line, reason),) = reasons(records)
    assert (name, line) == ("rollouts.jsonl", 3)
    assert reason.startswith("2 lines from here on repeat a rollout")


def test_a_failed_attempt_among_the_results_is_no_result(tmp_path: Path) -> None:
    """Its reward of 0.0 is a placeholder; counted, it would be a silent zero."""
    keys, records = read(write_run(tmp_path, [nemo_failure(0), nemo(1)]))
    assert keys == [(1, 0)]
    assert "_ng_failure_class" in records.problems[0].reason


def test_numbers_that_json_has_no_word_for_are_read_as_null(tmp_path: Path) -> None:
    line = codec.dumps(nemo(0)).replace(b'"reward":1.0', b'"reward":NaN,"extra":[Infinity,-Infinity,1e999]') + b"\n"
    records = Records(write_run(tmp_path, [line]))
    ((_, row, _),) = records.rollouts(Row)
    assert row.reward is None
    assert records.record(0, 0)["extra"] == [None, None, None]
    assert records.problems == [
        Problem(records.path, 1, "NaN, Infinity, -Infinity …: not a number in JSON; read as null")
    ]


def test_missing_files_are_fine_but_not_all_of_them(tmp_path: Path) -> None:
    write_lines(tmp_path / "rollouts_failures.jsonl", [our_failure(3)])
    keys, records = read(tmp_path / "rollouts.jsonl")
    assert keys == []
    assert records.record(3, 0)["failure_kind"] == "unreachable"
    assert list(records.results(Transcript)) == []
    with pytest.raises(StoreError, match=r"other\.jsonl does not exist, nor does other_failures\.jsonl"):
        Records(tmp_path / "other.jsonl")


def test_a_folder_or_a_sidecar_is_not_the_main_file(tmp_path: Path) -> None:
    write_run(tmp_path, [nemo(0)], failures=[], plan=[])
    with pytest.raises(StoreError, match="is a folder"):
        Records(tmp_path)
    for sidecar in ("rollouts_failures.jsonl", "rollouts_materialized_inputs.jsonl"):
        with pytest.raises(StoreError, match=r"belongs to .*rollouts\.jsonl: read that one"):
            Records(tmp_path / sidecar)


def test_record_is_the_whole_row_of_the_result_or_of_the_last_failed_attempt(tmp_path: Path) -> None:
    odd = ours(0, 1, extra={"deep": [2**60, "\ud800", None]}, items=[*conversation(), message("\u2028")])
    failed = [our_failure(5), our_failure(5, attempt=1), our_failure(0, 1)]
    records = Records(write_run(tmp_path, [nemo(1), odd], failures=failed))
    assert records.record(0, 1) == odd
    assert records.record(1, 0) == nemo(1)
    assert records.record(5, 0) == failed[1]
    with pytest.raises(StoreError, match="rollout 2 of task 1 has no row"):
        records.record(1, 2)


def test_a_record_that_only_the_fast_reader_takes_is_refused_in_words(tmp_path: Path) -> None:
    """A skipped text is not looked at, so a rollout whose text is not UTF-8 still has its reward."""
    line = codec.dumps(nemo(0)).replace(b"counter-stub", b"counter-\xff") + b"\n"
    records = Records(write_run(tmp_path, [line]))
    assert [row.reward for _, row, _ in records.rollouts(Row)] == [1.0]
    with pytest.raises(StoreError, match=r"rollouts\.jsonl:1 cannot be read whole"):
        records.record(0, 0)
    assert "not UTF-8" in records.problems[0].reason


def test_results_come_by_key_whatever_the_order_asked_for(tmp_path: Path) -> None:
    records = Records(write_run(tmp_path, [ours(2), ours(0, 1), ours(1), ours(0, 0)]))
    everything = [key for key, _, _ in records.results(Transcript)]
    assert everything == [(0, 0), (0, 1), (1, 0), (2, 0)] == list(records.places)
    assert [key for key, _, _ in records.results(Transcript, [(2, 0), (9, 9), (0, 1)])] == [(0, 1), (2, 0)]
    assert list(records.results(Transcript, [])) == []


def test_tasks_are_the_planned_rows_each_task_once(tmp_path: Path) -> None:
    plan = [planned(1, 0, level="b"), planned(1, 1, level="b"), planned(0, 0, level="a")]
    records = Records(write_run(tmp_path, [nemo(0)], plan=plan))
    assert [row["level"] for row in records.tasks()] == ["a", "b"]
    alone = Records(write_lines(tmp_path / "alone.jsonl", [nemo(3, 1), nemo(3, 0)]))
    assert [row["_ng_rollout_index"] for row in alone.tasks()] == [1]
