"""The widgets that a navigator moves: a bar of filters, a table, a pane to read in, and the buttons of each.

All of it is ipywidgets, so that it works wherever they do. ``assets/browser.js`` adds keys and clicks; it comes as an
output that is run when it is shown, and tells Python what was asked by writing into a text field that nobody sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gymkit.views.assets import asset
from gymkit.views.facets import Facets
from gymkit.views.html import Html, join, style_sheet, tag

__all__ = ["Panel", "section"]

KEYS: Final = (
    ("↑ ↓ or k j", "step"),
    ("PgUp PgDn Home End", "jump"),
    ("n p", "turn the pages of what is read"),
    ("x", "mark"),
    ("/", "filter"),
    ("Enter", "read"),
    ("Esc", "back to the table"),
)

Press = Callable[[int], None]


class Panel:
    """The widgets; ``root`` is what to display. ``id`` tells it from others on the page.

    ``turn_rows``, ``step`` and ``turn_pages`` are called with -1 or 1, ``way`` when another way to read is chosen,
    ``clear`` when every filter is to go, ``command`` with what the script sends.
    """

    def __init__(
        self,
        id: str,
        facets: Facets,
        ways: Sequence[str],
        *,
        stacked: bool,
        turn_rows: Press,
        step: Press,
        turn_pages: Press,
        way: Callable[[], None],
        clear: Callable[[], None],
        command: Callable[[str], None],
    ) -> None:
        import ipywidgets

        # Shared, since a layout is a model of its own and takes a kilobyte in the front end.
        self._plain = ipywidgets.Layout(width="auto", flex="none")
        self._free = ipywidgets.Layout()
        self._hidden = ipywidgets.Layout(display="none")
        self._style = ipywidgets.ButtonStyle()
        self.message, self.rows, self.head, self.body = (
            self._html(name) for name in ("message", "rows", "head", "body")
        )
        self.span, self.page = self._html("label"), self._html("label")
        self.turn_rows = self._pair(
            turn_rows, ("‹ rows", "the page of rows before"), ("rows ›", "the next page of rows")
        )
        self.step = self._pair(step, ("‹ previous", "the row before this one"), ("next ›", "the row after this one"))
        self.turn_pages = self._pair(turn_pages, ("‹ earlier", "the page before"), ("later ›", "the next page"))
        for button, name in zip(self.turn_pages, ("gk-earlier", "gk-later"), strict=True):
            button.add_class(name)
        self.way = ipywidgets.ToggleButtons(
            options=list(ways), style={"button_width": "auto"}, layout=self._plain if len(ways) > 1 else self._hidden
        )
        self.way.observe(lambda _: way(), "value")
        typed = ipywidgets.Text(layout=self._hidden)
        typed.add_class("gk-command")
        typed.observe(lambda change: command(change["new"]), "value")
        facets.query.add_class("gk-query")
        filters = [*facets.widgets, self._button("Clear", "take every filter away", clear)]
        listed = self._box("list", self.rows, self._box("tools", *self.turn_rows, self.span))
        read = self._box(
            "detail", self._box("tools", *self.step, self.way, *self.turn_pages, self.page), self.head, self.body
        )
        self.root = self._box(
            "browser",
            ipywidgets.HTML(f"<style>{style_sheet()}{asset('browser.css')}</style>", layout=self._hidden),
            self._box("tools", *filters),
            self.message,
            self._box("stack" if stacked else "panes", listed, read),
            self._html("legend", section(_keys())),
            typed,
            ipywidgets.Output(outputs=(_script(id),), layout=self._hidden),
        )
        self.root.add_class("gk")
        self.root.add_class(f"gk-live-{id}")

    def _pair(self, press: Press, before: tuple[str, str], after: tuple[str, str]) -> tuple[Any, Any]:
        return self._button(*before, lambda: press(-1)), self._button(*after, lambda: press(1))

    def _button(self, text: str, hint: str, press: Callable[[], None]) -> Any:
        import ipywidgets

        button = ipywidgets.Button(description=text, tooltip=hint, layout=self._plain, style=self._style)
        button.on_click(lambda _: press())
        return button

    def _html(self, name: str, value: str = "") -> Any:
        import ipywidgets

        made = ipywidgets.HTML(value, layout=self._free)
        made.add_class(f"gk-{name}")
        if name in ("rows", "body"):
            made.add_class("gk-scroll")
        return made

    def _box(self, name: str, *children: Any) -> Any:
        import ipywidgets

        made = ipywidgets.Box(children, layout=self._free)
        made.add_class(f"gk-{name}")
        return made


def section(*body: object) -> Html:
    """Return ``body`` as HTML of ours, without the style sheet."""
    return tag("section", *body, class_="gk")


def _keys() -> Html:
    named = [join([tag("kbd", keys), f" {does}"]) for keys, does in KEYS]
    return tag("p", join(named, " · "), class_="gk-quiet gk-keys")


def _script(id: str) -> Mapping[str, Any]:
    code = f'{asset("browser.js")}("{id}")'
    return {"output_type": "display_data", "data": {"application/javascript": code}, "metadata": {}}
