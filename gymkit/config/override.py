"""Override tokens of the command line, in Hydra's grammar.

``key=value`` changes what a file sets, ``+key=value`` and ``++key=value`` add or change. Values are Hydra's: numbers,
``true``, ``null``, quoted strings, ``[a,b]``, ``{a:1}``, ``${…}``; keys may be dotted paths.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gymkit.config.tree import Tree, holds
from gymkit.errors import ConfigError
from gymkit.nearest import closest


@dataclass(frozen=True, slots=True)
class Override:
    """One parsed token."""

    key: str
    """The dotted path as written."""
    value: Any = field(repr=False)
    """What to set."""
    must_exist: bool = False
    """True for ``key=value``: a file has to set the key already."""
    once: bool = False
    """True for ``+key=value``: it may be given once only."""

    @property
    def path(self) -> tuple[str, ...]:
        """The keys from the top."""
        return tuple(self.key.split("."))


def parse(tokens: Iterable[str]) -> list[Override]:
    """Parse tokens. Raises ConfigError that names the token's key (never its value: it may be a secret)."""
    tokens = list(tokens)
    if not tokens:
        return []
    # Half of the command line's start-up time, so only for those who give tokens.
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    overrides = []
    for token in tokens:
        try:
            overrides.append(_override(token, parser.parse_override(token)))
        except HydraException as error:
            raise ConfigError(f"{_named(token)} cannot be read; {_advice(token)}") from error
    return overrides


def as_tree(overrides: Iterable[Override]) -> Tree:
    """The overrides as one nested mapping, later ones over earlier ones. Raises ConfigError where two contradict."""
    tree: Tree = {}
    given: set[str] = set()
    for override in overrides:
        if override.once and override.key in given:
            raise ConfigError(
                f"the command line gives {override.key} twice; write ++{override.key}=… to replace a value"
            )
        given.add(override.key)
        node = tree
        for depth, key in enumerate(override.path[:-1], 1):
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                above = ".".join(override.path[:depth])
                raise ConfigError(f"the command line sets {override.key}, but {above} is a plain value")
        node[override.path[-1]] = override.value
    return tree


def check_existing(overrides: Iterable[Override], files: Tree) -> None:
    """Refuse a ``key=value`` whose key no file sets. Raises ConfigError."""
    for override in overrides:
        if override.must_exist and not holds(files, override.path):
            near = closest(override.key, _paths(files))
            hint = f"; did you mean {near!r}?" if near else f"; write +{override.key}=… to add it"
            raise ConfigError(f"no file sets {override.key}, so {override.key}=… has nothing to change{hint}")


def _override(token: str, parsed: Any) -> Override:
    from hydra.core.override_parser.types import OverrideType

    if parsed.type is OverrideType.DEL or parsed.package is not None:
        raise ConfigError(f"{_named(token)} is not supported; {_advice(token)}")
    if parsed.is_sweep_override():
        key = parsed.key_or_group
        raise ConfigError(f"{key} gets several values; write {key}=[a,b] for a list, or '{key}=\"a,b\"' for a text")
    return Override(
        parsed.key_or_group,
        parsed.value(),
        must_exist=parsed.type is OverrideType.CHANGE,
        once=parsed.type is OverrideType.ADD,
    )


def _named(token: str) -> str:
    key, equals, _ = token.partition("=")
    return f"the argument {key}=…" if equals else f"the argument {token!r}"


def _advice(token: str) -> str:
    if "=" not in token:
        return "arguments are +key=value, key=value or a flag such as --limit"
    return "a value with commas, brackets, quotes or = needs quotes: '+key=\"value\"'"


def _paths(tree: Tree, above: str = "") -> list[str]:
    found = []
    for key, value in tree.items():
        path = f"{above}.{key}" if above else key
        found += [path, *(_paths(value, path) if isinstance(value, dict) else ())]
    return found
