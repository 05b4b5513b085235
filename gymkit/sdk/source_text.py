"""The text of functions and classes, wherever they were written, and the names that it takes from around it."""

from __future__ import annotations

import ast
import inspect
import linecache
import symtable
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from gymkit.errors import ConfigError

ROLES: Final = ("tool", "verify", "seed")
"""The decorators of an environment, which are not part of what a function needs."""


def text_of(value: Any, name: str) -> str:
    """The definition of a function or a class, flush left, without an environment's decorators."""
    try:
        text = textwrap.dedent(_class_text(value) if isinstance(value, type) else inspect.getsource(value))
        [node] = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError):
        node = None
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name != name:
        what = "lambda" if name == "<lambda>" else name
        raise ConfigError(
            f"the text of {what} cannot be had: write it as a def or a class in a cell or a module (no lambda, not "
            "renamed, not typed into an interactive Python)"
        )
    lines = text.splitlines(keepends=True)
    for decorator in reversed(node.decorator_list):
        if _is_role(decorator):
            del lines[decorator.lineno - 1 : decorator.end_lineno]
    return "".join(lines).rstrip() + "\n"


def _is_role(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Attribute) and isinstance(decorator.value, ast.Name) and decorator.attr in ROLES


def _class_text(kind: type) -> str:
    """The text of a class. Python finds none for one that was written in a cell, so the cells are looked through."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        pass
    for entry in reversed(list(linecache.cache.values())):
        lines = entry[2] if len(entry) == 4 else []
        if any(kind.__name__ in line for line in lines):
            for node in _parsed("".join(lines)):
                if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                    return "".join(lines[first - 1 : node.end_lineno])
    raise OSError(f"no text of {kind.__name__}")


def _parsed(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except SyntaxError:
        return []  # a cell with a magic in it


def outer_names(text: str) -> Iterator[str]:
    """The names that a definition takes from around it: in its body, its annotations, defaults and decorators."""
    top = symtable.symtable(text, "<definition>", "exec")
    assigned = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned()}
    found = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found |= {each.get_name() for each in table.get_symbols() if each.is_global() and each.is_referenced()}
    yield from sorted(found - assigned)
