"""What several commands take."""

from __future__ import annotations

import typer

SETTINGS = typer.Argument(
    metavar="KEY=VALUE",
    help="Settings as in NeMo Gym: +key=value adds or overrides, key=value changes what a file sets, dotted keys nest.",
    show_default=False,
)
CONFIG = typer.Option(metavar="FILE", help="A YAML file; may be repeated, later ones win (config_paths).")
SEARCH = typer.Option(metavar="DIR", help="Where to look for files first; may be repeated.")
