"""What functions need to stand on their own: their text, the helpers they call, imports, and constants.

Whatever else they read lives in the notebook and nowhere else, so it is refused, with the name and what to do.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import math
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from gymkit.errors import ConfigError
from gymkit.sdk.source_text import outer_names, text_of

if TYPE_CHECKING:
    from gymkit.sdk.judge import Judge

Function = Callable[..., Any]


@dataclass(slots=True)
class Sources:
    """The text of some functions, and everything they rest on."""

    functions: dict[str, str] = field(default_factory=dict)
    """Name to text, without the decorators of an environment."""
    helpers: dict[str, str] = field(default_factory=dict)
    """Functions and classes that they use, name to text, each after what it needs itself."""
    imports: dict[str, str] = field(default_factory=dict)
    """Name to the statement that imports it."""
    constants: dict[str, str] = field(default_factory=dict)
    """Name to the expression that it stands for."""
    packages: set[str] = field(default_factory=set)
    """Packages of others that have to be installed."""
    postponed: bool = False
    """Whether annotations are not evaluated where they stand."""

    @property
    def names(self) -> set[str]:
        """Every name that is taken."""
        return {*self.functions, *self.helpers, *self.imports, *self.constants}

    @property
    def digest(self) -> str:
        """12 hex digits that change with any of it, comments and line breaks aside."""
        texts = [*self.imports.values(), *(f"{name} = {self.constants[name]}" for name in self.constants)]
        whole = "\n".join([*sorted(texts), *sorted(self.helpers.values()), *self.functions.values()])
        return hashlib.sha256(ast.dump(ast.parse(whole)).encode()).hexdigest()[:12]


def sources_of(functions: Iterable[Function]) -> Sources:
    """Collect what ``functions`` need. Raises ConfigError for one that rests on more than text can say."""
    collector = _Collector(list(functions))
    for function in collector.own:
        collector.add(function)
    return collector.found


def digest_of(functions: Iterable[Function]) -> str | None:
    """The digest of what they need, or of their own text where that is not all; None where there is no text."""
    functions = list(functions)
    try:
        return sources_of(functions).digest
    except ConfigError:
        pass
    try:
        return hashlib.sha256("\n".join(map(inspect.getsource, functions)).encode()).hexdigest()[:12]
    except (OSError, TypeError):
        return None


class _Collector:
    """Follows names from the functions it was given."""

    def __init__(self, own: list[Function]) -> None:
        self.own = own
        self.found = Sources()
        self._meant: dict[str, Any] = {}

    def add(self, function: Function) -> None:
        """One of the functions, and what it needs."""
        name = function.__name__
        plain = inspect.unwrap(function)
        text = text_of(plain, name)
        self._follow(name, text, plain)
        self.found.functions[name] = text

    def _follow(self, user: str, text: str, used_in: Any) -> None:
        """Everything that ``text``, the definition of ``user``, takes from around it."""
        space = used_in.__globals__ if isinstance(used_in, FunctionType) else vars(sys.modules[used_in.__module__])
        if isinstance(used_in, FunctionType):
            self.found.postponed |= bool(used_in.__code__.co_flags & _POSTPONED)
            if free := used_in.__code__.co_freevars:
                raise ConfigError(
                    f"{user} takes {', '.join(free)} from the function that it was written in: write it at the top of "
                    "a cell or a module, and let it get what it needs from the task or the state"
                )
        for name in outer_names(text):
            if name in space:
                self._need(user, name, space[name])
            elif not hasattr(builtins, name):
                raise ConfigError(f"{user} uses {name}, which is not defined")

    def _need(self, user: str, name: str, value: Any) -> None:
        if any(value is each for each in self.own) and name == value.__name__:
            return
        if name in self._meant:
            before, now = self._constant(self._meant[name]), self._constant(value)
            if self._meant[name] is not value and (now is None or before != now):
                raise ConfigError(f"{name} means one thing in {user} and another elsewhere: rename one of them")
            return
        self._meant[name] = value
        if (statement := self._import(user, name, value)) is not None:
            self.found.imports[name] = statement
        elif isinstance(plain := inspect.unwrap(value) if callable(value) else value, FunctionType | type):
            if plain.__name__ != name:
                raise ConfigError(f"{user} calls {plain.__name__} by another name, {name}: use its own")
            text = text_of(plain, name)
            self._follow(name, text, plain)
            self.found.helpers[name] = text
        elif _is_judge(value):
            self.found.helpers[name] = f"{name} = {self._judge(user, name, value)}\n"
        elif (constant := self._constant(value)) is not None:
            self.found.constants[name] = constant
        else:
            raise ConfigError(
                f"{user} reads {name}, a {type(value).__name__} that only this notebook has: put it into the tasks or "
                "into the function, or import it from a module"
            )

    def _import(self, user: str, name: str, value: Any) -> str | None:
        """The statement that imports ``value``; None for what is no module's, or of a module nobody else has."""
        if isinstance(value, ModuleType):
            if not self._is_shared(value.__name__):
                raise ConfigError(
                    f"{user} uses the module {value.__name__}, which is no installed package: put what it needs into "
                    "cells, or make the module a package"
                )
            return f"import {value.__name__}" if value.__name__ == name else f"import {value.__name__} as {name}"
        home, own = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if not isinstance(home, str) or not isinstance(own, str) or home == "builtins":
            return None
        if getattr(sys.modules.get(home), own, None) is not value or not self._is_shared(home):
            return None
        return f"from {home} import {own}" if own == name else f"from {home} import {own} as {name}"

    def _is_shared(self, module: str) -> bool:
        """Whether others have a module: it is Python's own, or of an installed package, which is noted."""
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names or top == "gymkit":
            return True
        if (package := _package(top)) is None:
            return False
        self.found.packages.add(package)
        return True

    def _judge(self, user: str, name: str, judge: Judge) -> str:
        """The expression that makes ``judge`` anew."""
        if not isinstance(judge.model, str):
            raise ConfigError(
                f"{user} asks {name}, whose model only this notebook has: give the judge the URL of a model server, or "
                "make it inside the function, with the key from os.environ"
            )
        answer = judge.answer
        if isinstance(answer, type):
            self._need(user, answer.__name__, answer)
        self.found.imports["gk"] = "import gymkit as gk"
        options = {
            "answer": answer.__name__ if isinstance(answer, type) else repr(answer) if answer else None,
            "scale": repr(judge.scale) if judge.scale else None,
            "timeout": repr(judge.timeout),
            "params": repr(judge.params) if judge.params else None,
        }
        given = "".join(f", {option}={text}" for option, text in options.items() if text)
        return f"gk.judge({judge.model!r}, {judge.instructions!r}{given})"

    def _constant(self, value: Any) -> str | None:
        """An expression for a value that cannot change; None for any other."""
        if value is None or isinstance(value, bool | int | str | bytes):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else None
        if isinstance(value, tuple | frozenset) and type(value) in (tuple, frozenset):
            parts = [self._constant(each) for each in (value if isinstance(value, tuple) else sorted(value, key=repr))]
            if None in parts:
                return None
            inside = ", ".join(map(str, parts))
            return (
                f"({inside}{',' if len(parts) == 1 else ''})" if isinstance(value, tuple) else f"frozenset([{inside}])"
            )
        if isinstance(value, re.Pattern):
            self.found.imports.setdefault("re", "import re")
            return f"re.compile({value.pattern!r}, {int(value.flags)})"
        return None


_POSTPONED: Final = 0x1000000  # CO_FUTURE_ANNOTATIONS


def _is_judge(value: object) -> TypeGuard[Judge]:
    """Told by its name: the class would bring model servers, which most environments do without."""
    return (type(value).__module__, type(value).__qualname__) == ("gymkit.sdk.judge", "Judge")


@cache
def _package(top: str) -> str | None:
    """The installed package that a top-level module is of; None for a module of the user's own folder."""
    from importlib import metadata  # 10 ms that only a look at somebody's functions is worth

    module = sys.modules.get(top)
    places = [getattr(module, "__file__", None) or "", *map(str, getattr(module, "__path__", ()))]
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")]
    if any(folder in Path(place).resolve().parents for place in places if place for folder in installed):
        return metadata.packages_distributions().get(top, [top])[0]
    try:
        return str(metadata.distribution(top).metadata["Name"])
    except metadata.PackageNotFoundError:
        return None
