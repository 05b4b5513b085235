"""A picture of numbers: drawn once for light and once for dark, and told in words for who cannot see it."""

from __future__ import annotations

import base64
import importlib.util
import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from gymkit.errors import MissingExtra
from gymkit.views.assets import asset
from gymkit.views.html import Html, tag, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DARK", "LIGHT", "Inks", "Plot", "label"]

DPI: Final = 110
LABEL_CHARS: Final = 32


@dataclass(frozen=True)
class Inks:
    """Colours of one theme; the series are after Okabe and Ito, and told apart with a colour vision deficiency too."""

    background: str
    """Behind everything."""
    ink: str
    """Texts and axes."""
    faint: str
    """Grid lines."""
    series: tuple[str, str, str]
    """What is drawn, in the order of its importance."""
    scale: str
    """Name of the colour map, one that gets evenly lighter."""


LIGHT: Final = Inks("#ffffff", "#24292f", "#d0d7de", ("#0072b2", "#d55e00", "#008060"), "cividis")
DARK: Final = Inks("#111111", "#e6edf3", "#3d444d", ("#56b4e9", "#f0a35e", "#35c49a"), "cividis")

_INKED: Final = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "hatch.color")
_FAINT: Final = ("axes.edgecolor", "grid.color")

Draw = Callable[[Any, Inks], None]
"""Draws into a matplotlib figure."""


class Plot:
    """A figure that a cell can end with. ``alt`` says the same in words.

    ``draw`` is called with a matplotlib figure and the colours to use; ``size`` is in inches. Raises MissingExtra
    without matplotlib.
    """

    def __init__(self, draw: Draw, alt: str, *, size: tuple[float, float] = (7.0, 3.4)) -> None:
        self.alt = visible(alt)
        self._draw = draw
        self._size = size
        if importlib.util.find_spec("matplotlib") is None:
            raise MissingExtra("matplotlib", "notebook", "a plot")

    @cached_property
    def figure(self) -> Figure:
        """The matplotlib figure, for changes of your own and ``savefig``."""
        return self._made(LIGHT)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file; the ending says in which format (png, svg, pdf)."""
        with _quiet():
            self.figure.savefig(path, dpi=DPI)

    def html(self) -> Html:
        """Return both pictures as HTML, of which a style sheet shows one; without it the light one is seen."""
        light = tag("img", src=self._png(LIGHT), class_="gk-when-light", alt=self.alt)
        # No size and hidden: of what hides it, a host that drops one for safety leaves the other.
        dark = tag("img", src=self._png(DARK), class_="gk-when-dark", alt=self.alt, hidden=True, width=0, height=0)
        return tag(
            "figure", Html(f"<style>{asset('plot.css')}</style>"), light, dark, class_="gk-plot", style="margin:0"
        )

    def _png(self, inks: Inks) -> str:
        from PIL import Image

        drawn, file = io.BytesIO(), io.BytesIO()
        with _quiet():
            self._made(inks).savefig(drawn, format="png", dpi=DPI)
        # A saved notebook holds two of these: with 96 colours they look the same and take a fraction of the bytes.
        Image.open(drawn).convert("RGB").quantize(96).save(file, format="png", optimize=True)
        return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"

    def _made(self, inks: Inks) -> Figure:
        import matplotlib
        from matplotlib.figure import Figure

        settings: dict[Any, Any] = dict.fromkeys(_INKED, inks.ink) | dict.fromkeys(_FAINT, inks.faint)
        settings |= {"axes.facecolor": inks.background, "font.size": 10, "text.parse_math": False}
        with matplotlib.rc_context(settings), _quiet():
            figure = Figure(figsize=self._size, layout="constrained", facecolor=inks.background)
            self._draw(figure, inks)
            figure.draw_without_rendering()  # what depends on the colours of this moment is settled now
        return figure

    def __repr__(self) -> str:
        return f"<Plot: {self.alt}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": str(self.html()), "text/plain": repr(self)}


def label(text: object) -> str:
    """Return foreign text for an axis: hidden characters marked, one line, not too long."""
    shown = " ".join(visible(str(text)).split())
    return shown if len(shown) <= LABEL_CHARS else f"{shown[: LABEL_CHARS - 1]}…"


@contextmanager
def _quiet() -> Iterator[None]:
    """A font without a glyph draws a box; a warning for each such character would bury the cell."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
