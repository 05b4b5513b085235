"""Where the files that come with gymkit lie: task rows, tutorials, notebooks.

An installed wheel holds them in ``gymkit/_share``; a source checkout at its top.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gymkit.errors import ConfigError
from gymkit.nearest import nearest

_PACKAGE = Path(__file__).resolve().parent

ENVIRONMENT_ALIASES = {
    "example_multi_step": "synonyms",
    "example_session_state_mgmt": "counter",
    "example_single_tool_call": "weather",
}
"""NeMo Gym's name of an environment, to ours."""

PATH_ALIASES = {
    f"resources_servers/{theirs}/data/example.jsonl": f"data/{ours}.jsonl"
    for theirs, ours in ENVIRONMENT_ALIASES.items()
}
"""Paths that NeMo Gym's documents use, to what we ship in their place."""


def root() -> Path:
    """The folder that holds ``data``, ``tutorials`` and ``notebooks``."""
    installed = _PACKAGE / "_share"
    return installed if installed.is_dir() else _PACKAGE.parent


def shipped(name: str) -> Path:
    """The shipped file or folder ``name`` (``data/counter.jsonl``). Raises ConfigError with the nearest name."""
    path = root() / name
    if not path.exists():
        known = (f"{Path(name).parent}/{entry.name}" for entry in _entries(path.parent))
        raise ConfigError(f"gymkit ships no {name}; {nearest(name, known)}")
    return path


def search_roots(search_dirs: Iterable[str | Path] = ()) -> list[Path]:
    """The folders in which a relative path is looked up, first to last.

    ``search_dirs``, those in ``NEMO_GYM_EXTRA_ROOTS`` (separated as in ``PATH``), the current folder, what we ship.
    """
    extra = [entry for entry in os.environ.get("NEMO_GYM_EXTRA_ROOTS", "").split(os.pathsep) if entry]
    roots = [*map(Path, search_dirs), *map(Path, extra), Path.cwd(), root()]
    return list(dict.fromkeys(folder.expanduser().resolve() for folder in roots))


def data_file(path: str | Path, search_dirs: Iterable[str | Path] = ()) -> Path:
    """The file of task rows that ``path`` names.

    A path in NeMo Gym's documents that is on no search root stands for the file we ship in its place.
    Raises ConfigError that lists where it was looked for.
    """
    given = Path(path).expanduser()
    places = [given] if given.is_absolute() else [folder / given for folder in search_roots(search_dirs)]
    for place in places:
        if place.is_file():
            return place
    if (ours := PATH_ALIASES.get(given.as_posix())) is not None:
        return shipped(ours)
    known = [*PATH_ALIASES, *(f"data/{entry.name}" for entry in _entries(root() / "data"))]
    looked = ", ".join(str(place) for place in places)
    raise ConfigError(f"there is no file {given}: looked for {looked}; {nearest(given.as_posix(), known)}")


def _entries(folder: Path) -> Iterable[Path]:
    return folder.iterdir() if folder.is_dir() else ()
