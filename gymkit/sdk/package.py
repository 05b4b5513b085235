"""A defined environment as a folder that others can serve, open and edit: a module, its tasks, a configuration."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from gymkit import __version__
from gymkit.errors import ConfigError
from gymkit.resources.defined import Defined
from gymkit.sdk.module import load_module
from gymkit.sdk.sources import Sources, digest_of, sources_of
from gymkit.wire import codec

MODULE: Final = "environment.py"
TASKS: Final = "tasks.jsonl"
README: Final = "README.md"

_MARK: Final = "saved by gymkit"
_ORDER: Final = ("seed", "tool", "verify")


def ordered(server: Defined) -> list[tuple[str, Any]]:
    """The functions of ``server`` with their roles, in the order in which a module has them."""
    roles = server.roles
    every = [("seed", roles.get("seed")), *(("tool", each) for each in server.functions.values())]
    return [(role, each) for role, each in [*every, ("verify", roles.get("verify"))] if each is not None]


def identity(server: object) -> dict[str, Any]:
    """What results depend on of a server that is made of functions, besides its name; empty for any other."""
    if not isinstance(server, Defined):
        return {}
    return {"definition": digest_of(each for _, each in ordered(server))}


def save(name: str, server: Defined, rows: list[dict[str, Any]], folder: Path, *, expose_tools_over_mcp: bool) -> Path:
    """Write the package ``folder``, once it has been written elsewhere and read back. Raises ConfigError."""
    functions = ordered(server)
    if not any(role == "verify" for role, _ in functions):
        raise ConfigError(f"{name} cannot be saved yet: it has no verifier")
    found = sources_of(each for _, each in functions)
    files = {
        MODULE: module_text(name, functions, found, expose_tools_over_mcp),
        TASKS: "".join(f"{codec.dumps(row).decode()}\n" for row in rows),
        f"{name}.yaml": _yaml(name, expose_tools_over_mcp),
        README: _readme(name, server, rows, found),
    }
    _check_place(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as draft:
        for file, text in files.items():
            (Path(draft) / file).write_text(text, "utf-8", errors="surrogatepass")
        _check_draft(Path(draft) / MODULE, server, found)
        folder.mkdir(exist_ok=True)
        for file in files:
            shutil.move(Path(draft) / file, folder / file)
    return folder


def module_text(name: str, functions: list[tuple[str, Any]], found: Sources, expose_tools_over_mcp: bool) -> str:
    """The module: imports, constants, helpers, the environment, and its functions with their decorators."""
    variable = re.sub(r"\W", "_", name)
    variable += "_env" if variable in found.names else ""
    imports = found.imports | {"gk": "import gymkit as gk", "Path": "from pathlib import Path"}
    for taken in ("gk", "Path"):
        if taken in found.names and found.imports.get(taken) != imports[taken]:
            raise ConfigError(f"{taken} is a name that the saved module needs itself: rename yours")
    exposed = ", expose_tools_over_mcp=True" if expose_tools_over_mcp else ""
    head = f'"""The environment {name}, {_MARK} {__version__}: edit it like any module."""\n'
    parts = [
        head + ("\nfrom __future__ import annotations\n" if found.postponed else ""),
        "\n".join(sorted(set(imports.values()), key=lambda line: (line.startswith("from"), line))) + "\n",
        "".join(f"{constant} = {found.constants[constant]}\n" for constant in found.constants),
        *(f"\n{text}" for text in found.helpers.values()),
        f'\n{variable} = gk.Env.define("{name}", tasks=Path(__file__).with_name("{TASKS}"){exposed})\n',
        *(f"\n@{variable}.{role}\n{found.functions[each.__name__]}" for role, each in functions),
    ]
    return "\n".join(part for part in parts if part)


class Defines(Protocol):
    """An environment that is made of functions: ``sdk.defined.DefinedEnv``."""

    definition: Defined
    """Its server."""
    name: str
    """Its name."""
    rows: list[dict[str, Any]]
    """Its tasks."""


def load(path: Path) -> Defines:
    """The environment that the module at ``path`` defines. Raises ConfigError."""
    module = load_module(path, _module_name(path))
    values = vars(module).values()
    found = {id(each): each for each in values if isinstance(getattr(each, "definition", None), Defined)}
    if len(found) != 1:
        raise ConfigError(f"{path} must define one environment with gymkit.Env.define, not {len(found)}")
    [environment] = found.values()
    return environment  # type: ignore[no-any-return]


def opened(path: Path, server: str, *, expose_tools_over_mcp: bool = False) -> tuple[Defined, list[dict[str, Any]]]:
    """A server called ``server`` of the environment that the module at ``path`` defines, and its task rows."""
    found = load(path)
    made = Defined(server, expose_tools_over_mcp=expose_tools_over_mcp)
    made.adopt(found.definition)
    return made, found.rows


def _module_name(path: Path) -> str:
    return f"gymkit_package_{hashlib.sha256(bytes(path.resolve())).hexdigest()[:12]}"


def configuration(folder: Path) -> Path:
    """The YAML file of the package in ``folder``. Raises ConfigError."""
    if folder.is_file():
        return folder
    if not folder.exists():
        raise ConfigError(f"{folder} does not exist: give a YAML file, or a folder that save() wrote")
    files = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    own = [path for path in files if path.stem == folder.name]
    if len(own or files) != 1:
        told = f"it has {', '.join(path.name for path in files) or 'none'}" if folder.is_dir() else "there is none"
        raise ConfigError(f"{folder} must be a folder with one configuration (*.yaml), as save() writes it: {told}")
    return (own or files)[0]


def _check_place(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file: give a folder to save into")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    module = folder / MODULE
    if not module.is_file() or _MARK not in module.read_text("utf-8", errors="replace")[:500]:
        raise ConfigError(f"{folder} holds other things than a saved environment: give a new folder")


def _check_draft(module: Path, server: Defined, found: Sources) -> None:
    """Read back what was written. Raises ConfigError when it is another environment than the one at hand."""
    made = load(module).definition
    before, after = ({name: tool.schema() for name, tool in each.tools.items()} for each in (server, made))
    if before != after or sources_of(each for _, each in ordered(made)).digest != found.digest:
        raise ConfigError(f"{server.name} cannot be saved: its text, read back, is another environment")
    del sys.modules[_module_name(module)]


def _yaml(name: str, expose_tools_over_mcp: bool) -> str:
    exposed = "      expose_tools_over_mcp: true\n" if expose_tools_over_mcp else ""
    return (
        f"# gymkit env start --config {name}.yaml\n"
        f"{name}_resources_server:\n"
        "  resources_servers:\n"
        f'    "{name}":\n'
        f"      entrypoint: {MODULE}\n"
        "      domain: other\n"
        f"{exposed}"
    )


def _readme(name: str, server: Defined, rows: list[dict[str, Any]], found: Sources) -> str:
    tools = "\n".join(
        f"| `{tool.name}({_signature(tool.schema())})` | {tool.description} |" for tool in server.tools.values()
    )
    told = f"| tool | |\n|---|---|\n{tools}\n" if tools else "It has no tools.\n"
    packages = " ".join(sorted(found.packages))
    needs = f"It needs `pip install gymkit {packages}`." if packages else "It needs gymkit and nothing else."
    return f"""# {name}

An environment with {len(rows)} tasks, {_MARK} {__version__}. {needs}

{told}
```python
import gymkit as gk

env = gk.Env("{name}/")          # this folder
env.check()
env.rollouts(gk.RemoteAgent("http://localhost:9000"))
```

From a shell, for agents and collectors of any kind, NeMo Gym's too:

```bash
gymkit env start --config {name}.yaml
```

`{MODULE}` holds the tools and the verifier, `{TASKS}` the tasks with what agents are told, `{name}.yaml` the server.
"""


def _signature(schema: Mapping[str, Any]) -> str:
    return ", ".join(schema["parameters"]["properties"])
