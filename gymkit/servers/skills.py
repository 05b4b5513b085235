"""Skills: a folder of instructions that agents who can read files are given for a run.

One folder a skill, each with a ``SKILL.md`` (the open Agent Skills format: YAML between two lines ``---``, then text).
They belong to the run and not to its tasks, so every row is stamped with ``skills_ref``: where they are, what they are
called, and a hash of what is in them, which is NeMo Gym's.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from gymkit.errors import ConfigError
from gymkit.shipped import search_roots

FILE: Final = "SKILL.md"
"""What every skill's folder has."""

_DIGITS: Final = 12


class Skill(BaseModel):
    """One skill, by its ``SKILL.md``."""

    model_config = ConfigDict(extra="ignore")

    name: str
    """Its name."""
    description: str | None = None
    """When to use it."""
    version: str | None = None
    """Its version, from ``metadata.version``."""


class SkillsRef(BaseModel):
    """The skills of a run, as its rows are stamped with them (``skills_ref``)."""

    model_config = ConfigDict(extra="ignore")

    path: str
    """The folder, as it was given."""
    hash: str
    """12 hex digits that change with any file in it, or its name."""
    skills: list[Skill]
    """What is in it."""


def read_skills(path: str | os.PathLike[str], search_dirs: Iterable[str | Path] = ()) -> SkillsRef:
    """The skills in the folder ``path``; a relative one is looked up as a task file is. Raises ConfigError."""
    folder = _found(path, search_dirs)
    folders = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    skills = [_skill(each) for each in folders]
    if not skills:
        raise ConfigError(f"{folder} holds no skills: each is a folder of its own with a {FILE}")
    names = [skill.name for skill in skills]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"{folder} holds two skills called {twice[0]!r}")
    return SkillsRef(path=os.fspath(path), hash=_hash(folder), skills=skills)


def stage_skills(row: Mapping[str, Any], folder: Path) -> SkillsRef | None:
    """Copy the skills that ``row`` is stamped with into ``folder``, which must not exist; None for a row without any.

    Raises ConfigError when they are not there, or are not what they were when the run was planned.
    """
    if row.get("skills_ref") is None:
        return None
    try:
        stamped = SkillsRef.model_validate(row["skills_ref"])
    except ValidationError as error:
        raise ConfigError(f"skills_ref is no stamp of skills: {error.errors()[0]['msg']}") from None
    source = _found(stamped.path, ())
    if (now := _hash(source)) != stamped.hash:
        raise ConfigError(
            f"the skills in {source} have changed since the run was planned ({stamped.hash}, now {now}): begin a new "
            "run"
        )
    shutil.copytree(source, folder)
    return stamped


def _found(path: str | os.PathLike[str], search_dirs: Iterable[str | Path]) -> Path:
    given = Path(path).expanduser()
    places = [given] if given.is_absolute() else [root / given for root in search_roots(search_dirs)]
    for place in places:
        if place.is_dir():
            return place
    kind = "is a file" if any(place.is_file() for place in places) else "is not there"
    raise ConfigError(f"skills: the folder {given} {kind}: looked for {', '.join(map(str, places))}")


def _skill(folder: Path) -> Skill:
    path = folder / FILE
    try:
        lines = path.read_text("utf-8-sig", errors="replace").split("\n")
    except OSError as error:
        raise ConfigError(f"{folder} is no skill: it has no {FILE} that can be read ({error.strerror})") from None
    ends = [number for number, line in enumerate(lines) if line.strip() == "---"]
    if len(ends) < 2 or ends[0] != 0:
        raise ConfigError(f"{path} must begin with a line ---, then name: and description:, then a line ---")
    try:
        fields = yaml.safe_load("\n".join(lines[1 : ends[1]]))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: what stands between the lines --- is not YAML: {error}") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        raise ConfigError(f"{path}: name is missing")
    metadata = fields.get("metadata")
    version = metadata.get("version") if isinstance(metadata, dict) else None
    description = fields.get("description")
    return Skill(
        name=fields["name"],
        description=None if description is None else str(description),
        version=None if version is None else str(version),
    )


def _hash(folder: Path) -> str:
    """Over every file: its path from ``folder``, a zero byte, its bytes, a zero byte."""
    digest = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:_DIGITS]
