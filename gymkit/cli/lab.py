"""``gymkit lab``: a copy of the tutorials and notebooks, opened in JupyterLab."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from gymkit.cli.exits import Terminated
from gymkit.errors import ConfigError, MissingExtra
from gymkit.shipped import shipped
from gymkit.wire import codec

FOLDERS = ("tutorials", "notebooks")
_LEFT_BY_RUNS = frozenset({"__pycache__", "results"})
_RECORD = ".gymkit-lab.json"


def lab(folder: Path, jupyter: Sequence[str]) -> int:
    """Copy, then run JupyterLab with the further arguments ``jupyter``; its exit status. Raises MissingExtra."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingExtra("jupyterlab", "notebook", "gymkit lab")
    for line in copy(shipped(FOLDERS[0]).parent, folder):
        typer.echo(line)
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder.resolve()}", *jupyter]
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait()
            except Terminated:
                process.terminate()
            except KeyboardInterrupt:  # JupyterLab got it too, and asks whether it is meant
                continue


def copy(top: Path, folder: Path) -> Iterator[str]:
    """Bring ``folder`` up to date with the notebooks under ``top``; yields a line for each file it changes or keeps.

    A file that is not as it was copied is the user's and stays. Raises ConfigError where the folder cannot be written.
    """
    record = folder / _RECORD
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copied: dict[str, str] = codec.loads(record.read_bytes()) if record.exists() else {}
        for source, name in _files(top):
            yield from _copy(source, folder / name, name, copied)
        record.write_bytes(codec.dumps(copied))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} cannot hold the notebooks: {error}") from error


def _copy(source: Path, target: Path, name: str, copied: dict[str, str]) -> Iterator[str]:
    content = source.read_bytes()
    there = _digest(target.read_bytes()) if target.exists() else None
    if there == _digest(content):
        copied[name] = there
    elif there is None or there == copied.get(name):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        copied[name] = _digest(content)
        yield f"{'copied' if there is None else 'updated'} {target}"
    else:
        yield f"kept {target}: it is yours"


def _files(top: Path) -> Iterator[tuple[Path, str]]:
    for folder in FOLDERS:
        for path in sorted((top / folder).rglob("*")):
            name = path.relative_to(top)
            if path.is_file() and not any(part.startswith(".") or part in _LEFT_BY_RUNS for part in name.parts):
                yield path, name.as_posix()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
