"""The pace of garbage collection is slowed while runs go and is as it was afterwards, however they overlap."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from gymkit.collect.garbage import seldom


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_it_is_slowed_and_restored_also_after_an_error() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ZeroDivisionError), seldom():
        assert gc.get_threshold() == (50_000, 10, 10)
        raise ZeroDivisionError
    assert gc.get_threshold() == (700, 10, 10)


def test_runs_that_overlap_restore_it_once_the_last_has_ended() -> None:
    gc.set_threshold(700, 10, 10)
    first, second = seldom(), seldom()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 50_000
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


def test_what_somebody_switched_off_stays_off() -> None:
    gc.set_threshold(0)
    with seldom():
        assert gc.get_threshold()[0] == 0
