"""``gymkit usersim prepare``: tasks for simulated users, written as JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from gymkit.usersim.preparation import omitted, prepared_rows, write_rows


def prepare(
    output: Path,
    probes: Sequence[str] | None,
    locale: str,
    rows: int | None,
    personas: str,
    personas_version: str | None,
    seed: int,
    max_turns: int,
    assistant: str | None,
) -> None:
    """Write prepared rows, say how many, and what was left out. Raises InputError, ConfigError, MissingExtra."""
    made = prepared_rows(
        probes or None,
        locale=locale,
        rows=rows,
        personas=personas,
        personas_version=personas_version,
        seed=seed,
        max_turns=max_turns,
        assistant=assistant,
    )
    write_rows(made, output)
    typer.echo(f"{len(made)} rows for {len({row['resolved_row']['probe_type'] for row in made})} probes in {output}")
    for name, reason in omitted(probes or None, locale).items():
        typer.echo(f"left out: {name}: {reason}")
