"""A view as a front end sees it: widgets found by what they show, and moved through their traits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.views.parsed import Parsed


class Touch:
    """The widgets of a view."""

    def __init__(self, view: Any) -> None:
        self.widgets = list({widget.model_id: widget for widget in _walk(view.widget)}.values())
        self._sent = 0

    def of_class(self, name: str) -> Any:
        """The one widget with a CSS class."""
        [found] = [widget for widget in self.widgets if name in getattr(widget, "_dom_classes", ())]
        return found

    def of_label(self, label: str) -> Any:
        """The one control with a description that begins so."""
        [found] = [w for w in self.widgets if str(getattr(w, "description", "")).startswith(label)]
        return found

    def click(self, label: str) -> None:
        """Click a button."""
        button = self.of_label(label)
        assert not button.disabled
        button.click()

    def send(self, **what: Any) -> None:
        """What the script sends: ``row``, ``mark`` or ``sort``."""
        self._sent += 1
        self.of_class("gk-command").value = json.dumps({"n": self._sent, **what})

    def text(self, name: str) -> str:
        """The text of an HTML widget with a CSS class ``gk-{name}``."""
        return Parsed(self.of_class(f"gk-{name}").value).text

    @property
    def state_bytes(self) -> int:
        """Bytes of everything that was sent to the front end and is kept there."""
        return sum(len(json.dumps(widget.get_state(), default=str).encode()) for widget in self.widgets)


def _walk(widget: Any) -> Iterator[Any]:
    yield widget
    for name in ("layout", "style"):
        if hasattr(widget, name):
            yield getattr(widget, name)
    for child in getattr(widget, "children", ()):
        yield from _walk(child)
