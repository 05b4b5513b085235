"""``gk.usersim.prepare``: tasks for simulated users, as a frame and as a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymkit.usersim.locales import left_out
from gymkit.usersim.personas import SYNTHETIC, land_of, read_personas, synthetic_personas
from gymkit.usersim.rows import Wanted, expanded, is_default, known_probes, made_rows
from gymkit.wire import codec

if TYPE_CHECKING:
    import pandas as pd

_TEXTS = ("task_id", "probe_type", "probe_variant", "locale", "conversation_language", "persona_name")


def prepared_rows(
    probes: str | Sequence[str] | None = None,
    *,
    locale: str = "en_US",
    rows: int | None = None,
    personas: str | os.PathLike[str] = SYNTHETIC,
    personas_version: str | None = None,
    seed: int = 1042,
    max_turns: int = 5,
    assistant: str | None = None,
    settings: Mapping[str, Any] | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """The rows that ``prepare`` makes, as dicts of the contract; parameters as there. ``omitted`` tells the rest."""
    if personas == SYNTHETIC:
        land_of(locale)  # a locale that is mistyped is told as that, and not as banks that are missing
    named = expanded(probes, rows, locale)
    if personas == SYNTHETIC:
        people, version = synthetic_personas(locale, len(named), seed), SYNTHETIC
    else:
        people, version = read_personas(Path(personas), locale, len(named), seed, personas_version)
    wanted = Wanted(
        named, locale, seed, version, assistant, {"max_turns": max_turns, **(settings or {})}, columns or {}
    )
    return made_rows(wanted, people)


def omitted(probes: str | Sequence[str] | None, locale: str) -> dict[str, str]:
    """The probes that the default leaves out in ``locale``, each with the reason; none where ``probes`` are named."""
    return left_out(locale, known_probes()) if is_default(probes) else {}


def prepare(
    probes: str | Sequence[str] | None = None,
    *,
    locale: str = "en_US",
    rows: int | None = None,
    personas: str | os.PathLike[str] = SYNTHETIC,
    personas_version: str | None = None,
    seed: int = 1042,
    max_turns: int = 5,
    assistant: str | None = None,
    settings: Mapping[str, Any] | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    output: str | os.PathLike[str] | None = None,
) -> pd.DataFrame:
    """Prepare tasks of NeMo User Sim: personas and probes, resolved and tried, without calling a model.

    Parameters
    ----------
    probes:
        Names of probes; by default one row of each of the 14 that the locale can play. What is left out is warned of
        and stands in ``attrs["left_out"]`` of the frame; a probe that is named and cannot be played is an error.
    locale:
        Whose language and banks, such as ``en_US`` or ``ja_JP``. With User Sim 0.2 ``financial_services`` has banks in
        en_US, en_GB, en_IN, de_DE and fr_FR only; the others have the other 13 probes.
    rows:
        How many rows; the probes are taken in turn.
    personas:
        ``"synthetic"`` makes them here from ``seed``; a path reads a Nemotron-Personas parquet file (or a folder with
        ``<locale>.parquet``), whose version is known by its SHA-256 or given as ``personas_version``.
    seed:
        Decides personas, themes, toolsets and the tasks of banks: the same seed makes the same rows.
    max_turns:
        Turns of the assistant in one conversation, at most.
    assistant:
        Name of the assistant's model. ``identity_disclosure`` grades whether the model knows its maker, so a name that
        its rules cannot place is an error here and not in the episode.
    settings, columns:
        Further settings of User Sim, and further columns by probe (``{"safety_agentic": {"action_request_id": …}}``).
    output:
        Also write the rows there, as JSON lines.

    Returns one row per task: ``task_id``, ``probe_type``, ``probe_variant``, ``locale``, ``conversation_language``,
    ``persona_name`` (string), ``max_turns`` (Int64), ``resolved_row`` (object). Raises InputError with a sentence for
    each row that cannot be made, ConfigError, and MissingExtra without ``gymkit[usersim]``.
    """
    made = prepared_rows(
        probes,
        locale=locale,
        rows=rows,
        personas=personas,
        personas_version=personas_version,
        seed=seed,
        max_turns=max_turns,
        assistant=assistant,
        settings=settings,
        columns=columns,
    )
    if output is not None:
        write_rows(made, Path(output))
    frame = as_frame(made)
    frame.attrs["left_out"] = absent = omitted(probes, locale)
    for name, reason in absent.items():
        warnings.warn(f"{name} is left out: {reason}", stacklevel=2)
    return frame


def as_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Prepared rows as a frame, with the columns that ``prepare`` tells."""
    import pandas as pd

    resolved = [row["resolved_row"] for row in rows]
    texts = {
        name: pd.array([(row if name == "task_id" else row["resolved_row"]).get(name) for row in rows], dtype="string")
        for name in _TEXTS
    }
    turns = pd.array([row["usersim_config"].get("max_turns") for row in resolved], dtype="Int64")
    return pd.DataFrame({**texts, "max_turns": turns, "resolved_row": pd.Series(resolved, dtype=object)})


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write prepared rows as JSON lines, all of them or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    beside.write_bytes(b"".join(codec.dumps(row) + b"\n" for row in rows))
    beside.replace(path)
