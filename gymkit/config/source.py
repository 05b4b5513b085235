"""The files of a configuration: finding them, reading them, following their ``config_paths``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from gymkit.config.tree import Tree, holds
from gymkit.errors import ConfigError

COMMAND_LINE = "the command line"


@dataclass(frozen=True, slots=True)
class Source:
    """One place that settings come from."""

    name: str
    """The file as the user named it, or ``the command line``."""
    tree: Tree = field(repr=False)
    """What it sets, unresolved."""
    folder: Path | None = field(default=None, repr=False)
    """Where its file lies; None for what is no file."""


def read(path: Path, name: str) -> Source:
    """Read one YAML file. Raises ConfigError with the line where the YAML breaks."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not UTF-8 text (byte {error.start})") from error
    return replace(parse(text, name), folder=path.parent)


def parse(text: str, name: str) -> Source:
    """The settings in YAML ``text``. Raises ConfigError."""
    try:
        tree = OmegaConf.create(text) if text.strip() else OmegaConf.create({})
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{name}{line} is not YAML: {error.problem}") from error
    except (yaml.YAMLError, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(f"{name} is not a configuration: {str(error).splitlines()[0]}") from error
    if not isinstance(tree, DictConfig):
        raise ConfigError(f"{name} must hold a mapping of names to settings at its top, not a list or a text")
    return Source(name, plain(tree))


def plain(tree: DictConfig) -> Tree:
    """The tree as plain containers, interpolations and ``???`` left as they are written; keys become strings."""
    container: Tree = _string_keys(OmegaConf.to_container(tree, resolve=False, throw_on_missing=False))
    return container


def gather(entries: Any, roots: Sequence[Path], named_by: str) -> list[Source]:
    """The files that ``config_paths`` names, ready to be merged from left to right.

    Depth first: a file comes after everything it includes, a later sibling after an earlier one, and each file once.
    """
    seen: set[Path] = set()

    def visit(entries: Any, named_by: str) -> Iterable[Source]:
        for entry in _names(entries, named_by):
            path = _find(entry, roots, named_by)
            if path.resolve() not in seen:
                seen.add(path.resolve())
                source = read(path, entry)
                yield from visit(source.tree.get("config_paths"), entry)
                yield source

    return list(visit(entries, named_by))


def origin(path: str, sources: Iterable[Source]) -> str:
    """The name of the last source that sets the dotted ``path``, or the nearest node above it that a source sets."""
    source = setter(path, sources)
    return source.name if source else "the configuration"


def setter(path: str, sources: Iterable[Source]) -> Source | None:
    """That source; None where none sets any of it."""
    keys = tuple(path.split("."))
    ordered = list(sources)[::-1]
    for length in range(len(keys), 0, -1):
        for source in ordered:
            if holds(source.tree, keys[:length]):
                return source
    return None


def _names(entries: Any, named_by: str) -> list[str]:
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise ConfigError(f"config_paths of {named_by} must be a list of files, such as [counter_remote.yaml]")
    return entries


def _find(entry: str, roots: Sequence[Path], named_by: str) -> Path:
    given = Path(entry).expanduser()
    places = [given] if given.is_absolute() else [folder / given for folder in roots]
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(str(place) for place in places)
    raise ConfigError(f"config_paths of {named_by} names {entry}, which does not exist: looked for {looked}")


def _string_keys(node: Any) -> Any:
    if isinstance(node, dict):
        return {str(key): _string_keys(value) for key, value in node.items()}
    return [_string_keys(value) for value in node] if isinstance(node, list) else node
