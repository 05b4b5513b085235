"""The controls that narrow a listing: an expression, the values of a column to keep, a range of rewards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from gymkit.views.entry import NAME_CHARS
from gymkit.views.html import visible
from gymkit.views.listing import EXAMPLE, Filter, Listing

__all__ = ["Facets"]

CHECKED: Final = ("status", "outcome")
"""Columns whose values are ticked one by one."""

CHOSEN: Final = ("failure_kind",)
"""Columns of which one value is chosen."""

RANGED: Final = ("reward", "difference")
"""Columns of numbers with a slider, the first that is there."""

_ANY: Final = "\0any"
_OPTIONS: Final = 50


class Facets:
    """The controls, as far as ``listing`` has the columns for them; ``changed`` is called when the user moves one."""

    def __init__(self, listing: Listing, changed: Callable[[], None]) -> None:
        import ipywidgets

        self._quiet = False
        self._changed = changed
        self.query = ipywidgets.Text(
            placeholder=EXAMPLE if "status" in listing.frame else "outcome == 'loss'",
            description="Filter",
            tooltip="An expression over the columns, as DataFrame.query reads it; press Enter",
            continuous_update=False,
            layout=ipywidgets.Layout(width="auto", flex="1 1 16rem"),
        )
        self._checks = [found for name in CHECKED if name in listing.frame for found in _checkboxes(listing, name)]
        self._choices = [(name, box) for name in CHOSEN if (box := _dropdown(listing, name)) is not None]
        self._ranges = [(name, slider) for name in RANGED if (slider := _slider(listing, name)) is not None][:1]
        self.widgets = [self.query, *(box for _, _, box in self._checks)]
        self.widgets += [box for _, box in [*self._choices, *self._ranges]]
        for widget in self.widgets:
            widget.observe(self._on_change, "value")

    def wanted(self) -> Filter:
        """Return the filter that the controls stand for."""
        columns = dict.fromkeys(name for name, _, _ in self._checks)
        kept = {name: [value for of, value, box in self._checks if of == name and box.value] for name in columns}
        among = [(name, frozenset(values)) for name, values in kept.items() if len(values) < self._count(name)]
        among += [(name, frozenset([box.value])) for name, box in self._choices if box.value != _ANY]
        between = [(name, *box.value) for name, box in self._ranges if tuple(box.value) != (box.min, box.max)]
        return Filter(self.query.value, tuple(among), tuple(between))

    def show(self, query: str) -> None:
        """Have the controls show a filter of nothing but ``query``."""
        with self._silence():
            self.query.value = query
            for _, _, box in self._checks:
                box.value = True
            for _, box in self._choices:
                box.value = _ANY
            for _, box in self._ranges:
                box.value = (box.min, box.max)

    def _count(self, name: str) -> int:
        return len([None for of, _, _ in self._checks if of == name])

    @contextmanager
    def _silence(self) -> Iterator[None]:
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def _on_change(self, _: Any) -> None:
        if not self._quiet:
            self._changed()


def _checkboxes(listing: Listing, name: str) -> Iterator[tuple[str, str, Any]]:
    import ipywidgets

    layout = ipywidgets.Layout(width="auto", flex="none")
    for value, count in listing.counts(name).items():
        label = f"{_label(value)} {count:,}"
        yield name, value, ipywidgets.Checkbox(value=True, description=label, indent=False, layout=layout)


def _dropdown(listing: Listing, name: str) -> Any:
    import ipywidgets

    if name not in listing.frame or not any(counts := listing.counts(name)):
        return None
    found = sorted(counts.items(), key=lambda item: -item[1])[:_OPTIONS]
    options = [(f"any {name.replace('_', ' ')}", _ANY), *((f"{_label(value)} ({n:,})", value) for value, n in found)]
    return ipywidgets.Dropdown(options=options, layout=ipywidgets.Layout(width="auto"), tooltip=name)


def _slider(listing: Listing, name: str) -> Any:
    import ipywidgets

    if name not in listing.frame or (known := listing.frame[name].dropna()).nunique() < 2:
        return None
    low, high = math.floor(100 * known.min()) / 100, math.ceil(100 * known.max()) / 100
    return ipywidgets.FloatRangeSlider(
        value=(low, high),
        min=low,
        max=high,
        step=max((high - low) / 100, 0.01),
        description=name,
        continuous_update=False,
        readout_format=".2f",
        layout=ipywidgets.Layout(width="19rem"),
        style={"description_width": "initial"},
    )


def _label(value: str) -> str:
    return visible(value[:NAME_CHARS][:40]) if value else "none"
