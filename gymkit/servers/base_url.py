"""Base URLs of services: what is wrong with one, in words."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

_ADDRESS: Final = re.compile(r"(localhost|[\w.-]+:\d+)(/[\w./-]*)?")


def base_url_problem(url: str) -> str | None:
    """Why ``url`` cannot be a server's base URL, or None. The URL is not repeated: it may hold a secret."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not a URL"
    if parts.username is not None or parts.password is not None:
        return "holds credentials, and none are ever sent: take them out of the URL"
    if parts.scheme not in ("http", "https"):
        example = f", as in http://{url.strip()}" if is_address(url) else ""
        return f"must start with http:// or https://{example}"
    if not parts.hostname:
        return "names no host"
    if parts.query or parts.fragment or url.rstrip().endswith(("?", "#")):
        return "must have no query string and no fragment"
    return None


def is_address(text: str) -> bool:
    """Whether ``text`` is a URL without its http://; what else stands in a URL's place may be a secret."""
    return _ADDRESS.fullmatch(text.strip()) is not None
