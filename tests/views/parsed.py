"""HTML as a browser takes it: which elements and attributes there are, and what text is shown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

INLINE = frozenset(["bdi", "br", "code", "span", "strong"])
BLOCKS = frozenset(["details", "div", "header", "p", "pre", "section", "style", "summary"])
TABLES = frozenset(["caption", "table", "tbody", "td", "th", "thead", "tr"])
STATIC = INLINE | BLOCKS | TABLES
"""The elements that our views use; none of them runs or loads anything."""

PAGE = STATIC | {"a", "body", "h1", "h2", "head", "html", "main", "meta", "nav", "title"}
"""Those of a page of its own."""


class Parsed(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag == "br":
            self.text += "\n"
        elif tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data

    def handle_decl(self, decl: str) -> None:
        assert (decl, self.elements) == ("doctype html", [])

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    handle_pi = handle_comment = unknown_decl

    @property
    def is_inert(self) -> bool:
        """Whether nothing in it can run, load or leave the page."""
        names = {name for name, _ in self.attributes}
        return set(self.elements) <= STATIC and not any(re.match(r"on|src|href|srcdoc|action", name) for name in names)
