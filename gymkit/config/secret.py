"""Keeping keys and passwords out of what is printed, published or logged."""

from __future__ import annotations

import re
from typing import Any

from gymkit.config.tree import Tree, leaves, mapped

MASK = "****"

_SECRET_KEY = re.compile(r"(?:^|_)(api_?key|access_key|token|secret|password|passwd|credentials?|authorization)(?:_|$)")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_SHORTEST = 6
"""Characters below which a secret is masked at its own key only: a short one would be found inside ordinary words."""


def is_secret_key(key: str) -> bool:
    """Whether such a key usually holds a secret (``policy_api_key``, ``hf_token``; not ``max_output_tokens``)."""
    return _SECRET_KEY.search(key.lower().replace("-", "_")) is not None


def redacted(tree: Tree) -> Tree:
    """A copy without secrets.

    Masked are strings under a secret's key, every other string that contains one of those, and credentials in URLs.
    """
    secrets = {value for path, value in leaves(tree) if isinstance(value, str) and is_secret_key(_key(path))}
    known = sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True)

    def mask(key: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value and is_secret_key(key):
            return MASK
        for secret in known:
            value = value.replace(secret, MASK)
        return _CREDENTIALS.sub(f"{MASK}@", value)

    copy: Tree = mapped(tree, mask)
    return copy


def _key(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path).rpartition(".")[2]
