"""The lessons run where the README's first line has installed gymkit, and show nothing of where they were run."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest

TOP = Path(__file__).parents[1]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
NOTEBOOKS = sorted([*TOP.glob("tutorials/*.ipynb"), *TOP.glob("notebooks/*.ipynb")])
NEEDS = {".to_dataset(": "datasets", ".to_parquet(": "pyarrow", "usersim.prepare(": "usersim", ".plot.": "matplotlib"}
"""What a call of ours needs installed, beside what a cell imports."""


def packages(*extras: str) -> set[str]:
    """The packages of the base and of ``extras``, by the names in ``pyproject.toml``."""
    found = {"numpy"}  # which pandas brings
    for line in [
        *PROJECT["dependencies"],
        *(one for extra in extras for one in PROJECT["optional-dependencies"][extra]),
    ]:
        inner = re.fullmatch(r"gymkit\[(.*)\]", line)
        found |= packages(*inner[1].split(",")) if inner else {re.split(r"[^\w.-]", line)[0]}
    return found


def modules(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"gymkit"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_needs_what_all_installs_or_names_its_extra(path: Path) -> None:
    cells: list[Any] = nbformat.read(path, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    named = set(re.findall(r"pip install '(?:gymkit)?\[?([\w-]+)\]'", cells[0].source.replace("gymkit[", "[")))
    installed = packages("all", *named)
    needed = modules(code) | {package for words, package in NEEDS.items() if words in code}
    assert needed <= installed, f"{path.name} needs {needed - installed}"


PLACES = re.compile(r"(?<![\w.])/(?:tmp|home|root|work|Users|var/folders)/")
"""How the path of a file begins that only one machine has."""


def shown(path: Path) -> str:
    """All that the outputs of a notebook show as text."""
    cells: list[Any] = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    texts = [text for output in outputs for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    texts += [output.get("text", "") for output in outputs]
    texts += [line for output in outputs for line in output.get("traceback", ())]
    return "\n".join(texts)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_no_path_of_the_machine_it_was_run_on(path: Path) -> None:
    text = shown(path)
    assert [text[max(0, found.start() - 40) : found.end() + 40] for found in PLACES.finditer(text)] == []
