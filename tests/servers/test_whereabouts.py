"""Where somebody's code was when it raised."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import Any

import pytest

from gymkit.agents.thread import place_of
from gymkit.servers.whereabouts import file_told, traceback_of

FILE = "/tmp/ipykernel_18003/1606077642.py"
SOURCE = """\
def check(answers):
    try:
        return answers[1]
    except IndexError as error:
        raise ValueError("no answer") from error
"""


@pytest.fixture
def cell() -> Iterator[dict[str, Any]]:
    """What a cell defined: its code has a file that is no file, whose lines the kernel knows."""
    space: dict[str, Any] = {"__name__": "__main__"}
    linecache.cache[FILE] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), FILE)
    exec(compile(SOURCE, FILE, "exec"), space)
    yield space
    del linecache.cache[FILE]


def failure(cell: dict[str, Any]) -> Exception:
    with pytest.raises(ValueError, match="no answer") as raised:
        cell["check"]([])
    return raised.value


def test_a_traceback_names_the_cell_and_shows_its_lines(cell: dict[str, Any]) -> None:
    told = traceback_of(failure(cell))
    assert '  File "<cell>", line 5, in check\n    raise ValueError("no answer") from error\n' in told
    assert '  File "<cell>", line 3, in check\n    return answers[1]\n' in told, "the cause, too"
    assert told.endswith("ValueError: no answer")
    assert "ipykernel" not in told


def test_a_group_is_told_in_full(cell: dict[str, Any]) -> None:
    assert "ipykernel" not in traceback_of(ExceptionGroup("two", [failure(cell), failure(cell)]))


def test_the_place_in_a_row_is_the_cell_and_the_function(cell: dict[str, Any]) -> None:
    assert place_of(failure(cell)) == " (<cell>:5, in check)"


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (FILE, "<cell>"),
        ("/var/folders/x/T/ipykernel_1/2.py", "<cell>"),
        (r"C:\Users\me\Temp\ipykernel_1\2.py", "<cell>"),
        ("/home/me/ipykernel_notes/agent.py", "/home/me/ipykernel_notes/agent.py"),
        ("<string>", "<string>"),
    ],
)
def test_only_cells_lose_their_file(file: str, told: str) -> None:
    assert file_told(file) == told
