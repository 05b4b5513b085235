"""``gymkit eval health-check``: whether a run's evidence is sound."""

from __future__ import annotations

from pathlib import Path

import typer

from gymkit.collect.health import examine
from gymkit.errors import StoreError
from gymkit.sdk.health import Health
from gymkit.wire import codec


def health_check(run: Path, rollout_file: str, ignored: list[str], as_json: bool) -> None:
    """Examine, write the two files into the run's folder and say what was found. Raises StoreError, ConfigError."""
    path = run / rollout_file if run.is_dir() else run
    if not path.is_file():
        raise StoreError(f"{path} is not there: name a run's folder and --rollout-file, or its main file")
    examined = examine(path, ignored)
    written = examined.write()
    if as_json:
        typer.echo(codec.dumps_indented(examined.summary()).decode())
        return
    typer.echo(repr(Health(examined)).strip("<>"))
    for each in written:
        typer.echo(str(each))
