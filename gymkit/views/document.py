"""A page of its own: what is shown in a cell, in a file or from a local server, without a script or a network."""

from __future__ import annotations

from typing import Final

from gymkit.views.assets import asset
from gymkit.views.html import Html, join, style_sheet, tag

__all__ = ["POLICY", "document"]

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a browser may load for a page of ours: its own styles and pictures, and nothing else."""


def document(title: str, *body: object) -> str:
    """Return a complete HTML page that nothing in it can make run, load or send anything."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="referrer" content="no-referrer">'),
        tag("title", title),
        Html(f"<style>{style_sheet()}{asset('page.css')}</style>"),
    )
    return f"<!doctype html>{tag('html', join([head, tag('body', tag('main', *body, class_='gk'))]), lang='en')}"
