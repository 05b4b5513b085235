"""``_inherit_from``, ``_copy`` and ``_delete_key``: blocks made out of other blocks."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from gymkit.config.tree import Tree, holds, merged
from gymkit.errors import ConfigError

_TEXT_FORM = re.compile(r"\$\{(inherit_from|copy):([^{}]+)\}")
_KEYS = {"_inherit_from": True, "_copy": False}
"""The key, and whether the block it names is removed (moved) afterwards."""


def expand(tree: Tree) -> Tree:
    """Apply all directives: local keys win over inherited ones, moved blocks disappear from where they were.

    Raises ConfigError for a path that does not exist, a block that inherits from itself, and a key to delete that is
    not there.
    """
    expander = _Expander(tree)
    expanded: Tree = expander.expand(tree, "", ())
    for path in expander.moved:
        _remove(expanded, path)
    return expanded


class _Expander:
    def __init__(self, tree: Tree) -> None:
        self.original = tree
        self.moved: list[tuple[str, ...]] = []

    def expand(self, node: Any, where: str, trail: tuple[str, ...]) -> Any:
        if isinstance(node, dict):
            return self._mapping(node, where, trail)
        if isinstance(node, list):
            return [self.expand(value, f"{where}[{index}]", trail) for index, value in enumerate(node)]
        if isinstance(node, str) and (match := _TEXT_FORM.fullmatch(node)):
            return self._block(match[2].strip(), match[1] == "inherit_from", where, trail)
        return node

    def _mapping(self, node: Tree, where: str, trail: tuple[str, ...]) -> Tree:
        doomed = [key.strip() for key in str(node.get("_delete_key", "")).split(",") if key.strip()]
        local: Tree = {
            key: self.expand(value, f"{where}.{key}" if where else key, trail)
            for key, value in node.items()
            if key not in _KEYS and key != "_delete_key" and key not in doomed
        }
        base: Any = {key: None for key in doomed if key in node}
        for key, moves in _KEYS.items():
            if node.get(key) is not None:
                base = merged(base, self._block(str(node[key]), moves, where, trail))
        if not isinstance(base, dict):
            raise ConfigError(f"{where} inherits from something that is not a block of settings")
        for key in doomed:
            if key not in base:
                raise ConfigError(f"{where}._delete_key names {key}, which is not there")
        return merged({key: value for key, value in base.items() if key not in doomed}, local)  # type: ignore[no-any-return]

    def _block(self, path: str, moves: bool, where: str, trail: tuple[str, ...]) -> Any:
        keys = tuple(path.split("."))
        if path in trail or path == where:
            raise ConfigError(f"{where} inherits from {path}, which leads back to itself")
        if not holds(self.original, keys):
            raise ConfigError(f"{where} inherits from {path}, which is not in the configuration")
        node: Any = self.original
        for key in keys:
            node = node[key]
        if moves:
            self.moved.append(keys)
        return self.expand(deepcopy(node), where, (*trail, path))


def _remove(tree: Tree, path: tuple[str, ...]) -> None:
    if holds(tree, path):
        for key in path[:-1]:
            tree = tree[key]
        del tree[path[-1]]
