from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.collect.lines import Appender, read, repair
from gymkit.errors import StoreError
from gymkit.wire import codec
from gymkit.wire.lines import Problem

TEXTS = st.text(st.characters(codec=None), max_size=12)  # lone surrogates, U+2028, NUL and all
ROWS = st.lists(st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-(2**63), 2**63 - 1), st.none()), max_size=3))


@contextmanager
def file_of(data: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.jsonl")
        path.write_bytes(data)
        yield path


def append(path: Path, *rows: dict[str, object]) -> None:
    appender = Appender(path)
    for row in rows:
        appender.append(row)
    appender.close()


def rows_of(path: Path) -> tuple[list[dict[str, object]], list[Problem]]:
    problems: list[Problem] = []
    return [line.row for line in read(path, problems)], problems


@given(ROWS)
def test_what_is_appended_is_read(rows: list[dict[str, object]]) -> None:
    with file_of(b"") as path:
        append(path, *rows)
        assert rows_of(path) == (rows, [])


@given(ROWS, st.data())
def test_a_cut_anywhere_loses_no_complete_line(rows: list[dict[str, object]], data: st.DataObject) -> None:
    lines = [codec.dumps(row) + b"\n" for row in rows]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    ends = [sum(map(len, lines[: n + 1])) - 1 for n in range(len(lines))]  # a row is whole before its line end
    complete = sum(end <= cut for end in ends)
    with file_of(whole[:cut]) as path:
        repair(path)
        append(path, {"next": 1})
        assert rows_of(path) == ([*rows[:complete], {"next": 1}], [])


@given(ROWS, st.binary(max_size=40))
def test_any_bytes_after_the_rows_cost_none_of_them(rows: list[dict[str, object]], junk: bytes) -> None:
    with file_of(b"".join(codec.dumps(row) + b"\n" for row in rows) + junk) as path:
        repair(path)
        append(path, {"next": 1})
        found, _ = rows_of(path)
        assert found[: len(rows)] == rows
        assert found[-1] == {"next": 1}


@given(st.binary())
def test_reading_and_repairing_never_raise(junk: bytes) -> None:
    with file_of(junk) as path:
        before, _ = rows_of(path)
        repair(path)
        assert rows_of(path)[0] == before
        assert repair(path) is None


def test_lines_end_at_newline_only() -> None:
    with file_of('{"text":"a\u2028b\x85c"}\r\n{"n":1}\r\n'.encode()) as path:
        assert rows_of(path) == ([{"text": "a\u2028b\x85c"}, {"n": 1}], [])


def test_what_holds_no_row_is_reported_by_line() -> None:
    with file_of(b'\xef\xbb\xbf{"n":1}\n\n{"n":\n[1]\n  \n{"n":2}\n{"n":NaN}\n"torn') as path:
        rows, problems = rows_of(path)
        assert rows == [{"n": 1}, {"n": 2}]
        assert [(problem.path, problem.line) for problem in problems] == [
            (path, number) for number in (2, 3, 4, 5, 7, 8)
        ]
        assert [problem.blank for problem in problems] == [True, False, False, True, False, False]
        assert str(problems[2]) == f"{path}:4: the line holds a JSON list, not an object"


def test_places_in_a_file() -> None:
    with file_of(b'{"n":1}\n\n{"n":2}') as path:
        assert [(line.number, line.offset) for line in read(path, [])] == [(1, 0), (3, 9)]


@pytest.mark.parametrize(
    ("tail", "kept", "told"),
    [(b'{"n":2}', b'{"n":2}\n', "had no end"), (b'{"n":', b"", "5 bytes were cut off"), (b"\0" * 9, b"", "9 bytes")],
)
def test_a_repair_says_what_it_did(tail: bytes, kept: bytes, told: str) -> None:
    with file_of(b'{"n":0}\n{"n":1}\n' + tail) as path:
        problem = repair(path)
        assert path.read_bytes() == b'{"n":0}\n{"n":1}\n' + kept
        assert problem is not None
        assert (problem.path, problem.line) == (path, 3)
        assert told in problem.reason


def test_a_torn_line_longer_than_a_block_is_found() -> None:
    with file_of(b'{"n":1}\n' + b'{"text":"' + b"x" * (3 << 20)) as path:
        assert repair(path) is not None
        assert path.read_bytes() == b'{"n":1}\n'


def test_a_row_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    """A full disk (here: a bound on file sizes) takes part of a line, which must go again."""
    path = tmp_path / "rows.jsonl"
    script = (
        "import resource, sys; from pathlib import Path; from gymkit.collect.lines import Appender\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        "appender = Appender(Path(sys.argv[1]))\n"
        "appender.append({'text': 'x' * 50})\n"
        "try: appender.append({'text': 'y' * 50})\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"StoreError {path} cannot take another row: ")
    assert rows_of(path) == ([{"text": "x" * 50}], [])


def test_an_unwritable_row_is_a_store_error(tmp_path: Path) -> None:
    appender = Appender(tmp_path / "rows.jsonl")
    appender.close()
    with pytest.raises(StoreError, match=r"rows\.jsonl cannot take another row"):
        appender.append({"n": 1})


def test_what_cannot_be_emptied_is_a_store_error() -> None:
    appender = Appender(Path("/dev/full"))
    with pytest.raises(StoreError, match="/dev/full cannot be emptied: "):
        appender.clear()
    with pytest.raises(StoreError, match="/dev/full cannot take another row: No space left on device"):
        appender.append({"n": 1})
    appender.close()
