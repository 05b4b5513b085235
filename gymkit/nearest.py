"""The nearest right name, for the sentence that refuses a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHOWN = 12


def closest(word: str, known: Iterable[str]) -> str | None:
    """The one name close to ``word``, if there is one."""
    return next(iter(difflib.get_close_matches(word, sorted(set(known)), n=1, cutoff=0.6)), None)


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint to end a sentence with: the one name close to ``word``, or the names there are."""
    names = sorted(set(known))
    if near := closest(word, names):
        return f"did you mean {near!r}?"
    if not names:
        return "there are none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(names[:_SHOWN])}{more}"
