"""Style sheets and scripts, each in a file of its own language."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["asset"]


@cache
def asset(name: str) -> str:
    """Return the text of the file called ``name`` in this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
