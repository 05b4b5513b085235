"""The house: imports go down only, and rooms side by side do not know each other. Held as data, read with ``ast``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gymkit"

STOREYS = [
    {"__main__"},
    {"cli"},
    {"sdk"},
    {"views", "stats", "frames", "collect", "resources", "agents", "models", "environments", "usersim", "testing"},
    {"servers"},
    {"config"},
    {"shipped"},
    {"nearest", "wire"},
    {"errors"},
]
"""From the roof to the ground; a room may import from any storey below its own."""

DOORS: set[tuple[str, str]] = {("testing", "models"), ("usersim", "environments")}
"""Doors between rooms of one storey."""


def level(room: str) -> int:
    return next(index for index, rooms in enumerate(STOREYS) if room in rooms)


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and node.module.startswith("gymkit."):
            yield node.module.split(".")[1], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "gymkit":
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("gymkit."):
                    yield alias.name.split(".")[1], node.lineno


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py" or path.parent != PACKAGE)


def test_every_room_has_a_storey() -> None:
    for path in FILES:
        level(room_of(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    here = room_of(path)
    for there, line in imports(path):
        if there == here or (here, there) in DOORS or there == "__version__":
            continue
        assert level(there) > level(here), f"{path.relative_to(ROOT)}:{line}: {here} may not import {there}"


def test_nothing_imports_relatively() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}:{node.lineno}"


def test_no_file_is_longer_than_400_lines() -> None:
    long = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {name: lines for name, lines in long.items() if lines > 400} == {}
