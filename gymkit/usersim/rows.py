"""Prepared rows: a persona, a probe and every setting, resolved, so that an episode needs nothing else."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from gymkit.errors import InputError
from gymkit.nearest import nearest
from gymkit.usersim.locales import left_out
from gymkit.usersim.package import load, revision

NO_THEME = "__not_used__"
"""What stands in ``theme`` for probes that bring their own content."""

_ASSISTANT = "assistant_model"
_BINS = ((25, "18-24"), (35, "25-34"), (45, "35-44"), (55, "45-54"), (65, "55-64"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What rows are to be made."""

    probes: tuple[str, ...]
    """The probe of each row."""
    locale: str
    """The locale of all of them."""
    seed: int
    """Decides which theme, toolset and task of a bank a row gets."""
    personas_version: str
    """What rows say of where their personas come from."""
    assistant: str | None = None
    """Name of the assistant's model; ``identity_disclosure`` has to know whose it is."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Laid over User Sim's own settings (``max_turns`` and others)."""
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Further columns by probe, such as a task of the bank by its id."""


def known_probes() -> tuple[str, ...]:
    """The probes of the installed package. Raises MissingExtra."""
    load()
    from usersim.engine.core.probes import known_probes

    return tuple(known_probes())


def is_default(probes: str | Sequence[str] | None) -> bool:
    """Whether all probes are meant, as far as the locale can play them."""
    return probes is None or probes == "all"


def expanded(probes: str | Sequence[str] | None, rows: int | None, locale: str) -> tuple[str, ...]:
    """The probe of each row: all that ``locale`` can play once, or those named, as often as ``rows`` asks.

    Raises InputError for a probe that does not exist, or that is named and cannot be played in ``locale``.
    """
    known = known_probes()
    everything = is_default(probes)
    named = known if everything else (probes,) if isinstance(probes, str) else tuple(probes or ())
    if wrong := [name for name in named if name not in known]:
        raise InputError([f"there is no probe {name!r}; {nearest(name, known)}" for name in wrong])
    if (without := left_out(locale, named)) and not everything:
        raise InputError([f"{name} cannot be played: {reason}" for name, reason in without.items()])
    named = tuple(name for name in named if name not in without)
    count = len(named) if rows is None else rows
    if count < 1 or not named:
        raise InputError([f"rows: must be at least 1, not {count}" if named else "probes: none are named"])
    return tuple(named[index % len(named)] for index in range(count))


def seed_of(seed: int, name: str) -> int:
    """A seed of its own for ``name``, as NeMo Gym makes one for each probe."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{name}".encode()).digest()[:4], "big")


def made_rows(wanted: Wanted, personas: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One prepared row for each probe of ``wanted``, each tried by building its episode; no model is called.

    Raises InputError with a sentence for each row that cannot be, and MissingExtra.
    """
    made: list[dict[str, Any]] = []
    problems: list[str] = []
    seen: dict[str, int] = {}
    for persona, probe in zip(personas, wanted.probes, strict=True):
        turn = seen[probe] = seen.get(probe, -1) + 1
        seed = seed_of(wanted.seed, probe if not turn else f"{probe}\0{turn}")
        row = _row(wanted, persona, probe, seed)
        try:
            made.append(_resolved(row, _config(wanted, probe, seed), wanted.assistant))
        except Exception as error:  # noqa: BLE001 - banks, personas and settings fail in many ways, each of them one row
            problems.append(f"{probe} ({wanted.locale}): {' '.join(str(error).split())[:600]}")
    names = [row["task_id"] for row in made]
    problems += [f"two rows have the task_id {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    if problems:
        raise InputError(problems)
    return made


def _resolved(row: dict[str, Any], config: dict[str, Any], assistant: str | None) -> dict[str, Any]:
    external = load()
    from usersim.engine.config import ConversationSimulatorConfig

    checked = ConversationSimulatorConfig.model_validate(config)
    models = {_ASSISTANT: external.HostRoleModel(assistant)} if assistant else {}
    resolved = external.construct_probe_episode(row, config=checked, models=models).preamble.to_row()
    resolved["usersim_config"] = {
        key: value for key, value in checked.model_dump(mode="json").items() if key != "assets_dir"
    }
    resolved = finite(resolved)
    return {"task_id": resolved["trajectory_id"], "resolved_row": resolved}


def _config(wanted: Wanted, probe: str, seed: int) -> dict[str, Any]:
    tools = {"tools_column": "tools", "toolset_name_column": "toolset_name"} if probe == "tool_calling" else {}
    settings = {"name": "conversation_messages", "locale": wanted.locale, "random_seed": seed, **tools}
    return {**settings, **wanted.settings}


def _row(wanted: Wanted, persona: Mapping[str, Any], probe: str, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    provenance = {
        "nemotron_personas_version": wanted.personas_version,
        "scenario_prompt_version": _prompt_version(probe),
        "code_sha": revision(),
        "bank_version": {},
    }
    return {
        "persona": dict(persona),
        "probe_type": probe,
        "theme": _theme(probe, wanted.locale, chance),
        **_displayed(persona),
        "usersim_provenance": json.dumps(provenance, ensure_ascii=False),
        **(_toolset(chance) if probe == "tool_calling" else {}),
        **wanted.columns.get(probe, {}),
    }


def _prompt_version(probe: str) -> str:
    import sys

    from usersim.engine.core.probes import resolve_probe

    return str(getattr(sys.modules[resolve_probe(probe).__module__], "PROMPT_VERSION", "v1.0"))


def _theme(probe: str, locale: str, chance: random.Random) -> str:
    if probe == "tool_calling":
        from usersim.cli._pipeline import DEFAULT_TOOL_CALLING_THEMES

        return str(chance.choice(DEFAULT_TOOL_CALLING_THEMES[:6]))  # the last ones ask for no tool
    kind = {"general_open_ended": "topics", "general_educational": "subjects"}.get(probe)
    if kind is None:
        return NO_THEME
    from usersim.engine.core.seeds import load_seeds

    return json.dumps(chance.choice(load_seeds(locale, probe, kind, None)), ensure_ascii=False)


@cache
def _toolsets() -> list[dict[str, Any]]:
    from pyarrow import parquet
    from usersim.cli._pipeline import resolve_toolset_seed_path
    from usersim.engine.core._assets import default_assets_dir

    rows: list[dict[str, Any]] = parquet.read_table(resolve_toolset_seed_path(default_assets_dir())).to_pylist()
    return rows


def _toolset(chance: random.Random) -> dict[str, Any]:
    return dict(chance.choice(_toolsets()))


def _displayed(persona: Mapping[str, Any]) -> dict[str, str]:
    """The copies of a persona's fields that reports group by."""
    age = persona.get("age")
    years = age if isinstance(age, int | float) else 0
    places = (persona.get(name) for name in ("city", "district", "region", "country"))
    location = ", ".join(dict.fromkeys(str(place) for place in places if place))
    return {
        "persona_name": f"{persona.get('first_name') or ''} {persona.get('last_name') or ''}".strip(),
        "persona_age": str(age),
        "persona_age_bin": next((label for bound, label in _BINS if years < bound), "65+"),
        "persona_sex": str(persona.get("sex") or "-").lower(),
        "persona_education_level": str(persona.get("education_level") or "-"),
        "persona_occupation": str(persona.get("occupation") or "-"),
        "persona_location": location or "-",
        "persona_country": str(persona.get("country") or "-"),
    }


def finite(value: Any) -> Any:
    """``value`` with null for numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): finite(each) for key, each in value.items()}
    return [finite(each) for each in value] if isinstance(value, list | tuple) else value


def identity_problems(rows: Iterable[Mapping[str, Any]], assistant: str) -> Iterator[str]:
    """A sentence for each prepared row that ``assistant`` (the name of its model) makes unplayable. Builds episodes."""
    for row in rows:
        resolved = row["resolved_row"]
        if resolved.get("probe_type") != "identity_disclosure":
            continue
        config = dict(resolved["usersim_config"])
        try:
            _resolved({k: v for k, v in resolved.items() if k != "usersim_config"}, config, assistant)
        except Exception as error:  # noqa: BLE001 - whatever keeps the episode from being built is told in a sentence
            said = " ".join(str(error).split())[:300]
            yield (
                f"task {row['task_id']}: identity_disclosure cannot be played with an assistant called {assistant!r}, "
                f"since nobody knows who made it: give assistant_name=… ({said})"
            )
