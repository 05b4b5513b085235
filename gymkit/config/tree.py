"""Plain nested mappings and the dotted paths into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Tree = dict[str, Any]
"""A configuration as plain dicts, lists and scalars; keys are strings."""


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar with its dotted path; list items as ``path[0]``."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from leaves(value, f"{path}[{index}]")
    else:
        yield path, node


def mapped(node: Any, change: Any, key: str = "") -> Any:
    """A copy in which each scalar is ``change(key, value)``; ``key`` is the mapping key above it."""
    if isinstance(node, Mapping):
        return {name: mapped(value, change, str(name)) for name, value in node.items()}
    if isinstance(node, list):
        return [mapped(value, change, key) for value in node]
    return change(key, node)


def merged(base: Any, over: Any) -> Any:
    """``over`` laid upon ``base``: mappings merge key by key, anything else is replaced."""
    if isinstance(base, dict) and isinstance(over, dict):
        both = {key: merged(base[key], value) if key in base else value for key, value in over.items()}
        return {**base, **both}
    return over


def holds(tree: Any, path: tuple[str, ...]) -> bool:
    """Whether there is anything at ``path``, a null included."""
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return False
        tree = tree[key]
    return True
