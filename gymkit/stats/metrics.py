"""The tidy form in which results are handed out: one row a number, the same columns everywhere."""

from __future__ import annotations

import pandas as pd

from gymkit.stats.interval import Interval

NAN = float("nan")


def point(value: float, n: int, method: str) -> Interval:
    """A number without an interval."""
    return Interval(float(value), NAN, NAN, n, method)


def metric_frame(found: dict[str, Interval]) -> pd.DataFrame:
    """``found`` as a frame: metric string, value, low, high Float64 (NA where none belongs), n Int64, method string."""
    cells = list(found.values())
    ends = {
        name: pd.array([getattr(cell, name) for cell in cells], dtype="Float64") for name in ("value", "low", "high")
    }
    return pd.DataFrame(
        {
            "metric": pd.array(list(found), dtype="string"),
            **ends,
            "n": pd.array([cell.n for cell in cells], dtype="Int64"),
            "method": pd.array([cell.method for cell in cells], dtype="string"),
        }
    )


def metric(frame: pd.DataFrame, name: str) -> Interval:
    """The row ``name`` of a metric frame; a KeyError that lists the names when there is none."""
    found = frame[frame["metric"] == name]
    if found.empty:
        raise KeyError(f"{name!r}; the metrics are {', '.join(frame['metric'])}")
    value, low, high = found[["value", "low", "high"]].to_numpy(dtype=float, na_value=NAN)[0]
    return Interval(float(value), float(low), float(high), int(found["n"].iloc[0]), str(found["method"].iloc[0]))
