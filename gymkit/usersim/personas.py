"""Personas: made here from a seed, or read from a Nemotron-Personas file that the user has."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gymkit.errors import ConfigError, MissingExtra
from gymkit.nearest import nearest
from gymkit.usersim.people import GOALS, LANDS, OCCUPATIONS, PASTIMES, SKILLS, Land

SYNTHETIC: Final = "synthetic"
"""What rows with personas of our own call the version of the data set."""

KNOWN_FILES: Final = {"0341192b00a376cf5643d98cb244e596529030fb3011694ca6ab381f149d3ae8": "0.0.2"}
"""SHA-256 of a published file to its version."""

TRAITS: Final = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")

_YEAR: Final = 2026
_CHUNK: Final = 2**20


def synthetic_personas(locale: str, count: int, seed: int) -> list[dict[str, Any]]:
    """``count`` personas of ``locale``, the same for the same seed. Raises ConfigError for an unknown locale."""
    land = land_of(locale)
    return [_persona(locale, land, index, f"{seed}/{locale}/{index}") for index in range(count)]


def land_of(locale: str) -> Land:
    """What synthetic personas of ``locale`` are drawn from. Raises ConfigError for an unknown locale."""
    if locale not in LANDS:
        raise ConfigError(f"there are no synthetic personas for the locale {locale!r}; {nearest(locale, LANDS)}")
    return LANDS[locale]


def _persona(locale: str, land: Land, index: int, seed: str) -> dict[str, Any]:
    chance = random.Random(seed)
    woman = chance.random() < 0.5
    first = chance.choice((land.women if woman else land.men).split())
    last = chance.choice(land.families.split())
    work, education, field, labour, ages = chance.choice(OCCUPATIONS)
    age = chance.randint(*ages)
    likes, skills = chance.choice(PASTIMES), chance.choice(SKILLS)
    place = chance.choice(land.places)
    persona = {
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"gymkit/{seed}")),
        "first_name": first,
        "middle_name": "",
        "last_name": last,
        "sex": "Female" if woman else "Male",
        "age": age,
        "marital_status": chance.choice(("married_present", "never_married", "divorced", "widowed")),
        "postcode": place.postcode,
        "city": place.city,
        "district": place.district,
        "country": land.country,
        "street_name": chance.choice(land.streets.split(",")),
        "street_number": chance.randint(1, 240),
        "unit": "",
        "bachelors_field": field or "no_degree",
        "education_level": education,
        "occupation": work,
        "locale": locale,
        "ethnic_background": "unspecified",
        "birth_date": f"{_YEAR - age}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}",
        "phone_number": f"555-01{index % 100:02d}",
        "email_address": f"user{index}@example.invalid",
        "national_id": "000-00-0000",
        "state": place.state,
        **_facets(first, age, work.replace("_", " "), labour, place.city, likes, skills, chance),
        **_traits(chance),
    }
    return persona | _background(land, chance)


def _facets(
    first: str,
    age: int,
    work: str,
    labour: str,
    city: str,
    likes: Sequence[str],
    skills: Sequence[str],
    chance: random.Random,
) -> dict[str, str]:
    article = "an" if work[0] in "aeiou" else "a"
    short = f"{first} is {article} {work} of {age} from {city} who {labour}."
    return {
        "persona": short,
        "detailed_persona": f"{short} Outside work there are {likes[0]}, {likes[1]} and {likes[2]}. "
        f"{first} likes direct answers and tells at once when something is not clear.",
        "professional_persona": f"As {article} {work}, {first} {labour}.",
        "career_goals_and_ambitions": chance.choice(GOALS),
        "cultural_background": f"{first} has lived in {city} for years and feels at home there.",
        "arts_persona": f"{first} enjoys {likes[2]} and goes to a concert once in a while.",
        "culinary_persona": f"{first} cooks simple meals on weekdays and tries something new on Sundays.",
        "finance_persona": f"{first} keeps a small reserve, dislikes debt and compares prices.",
        "healthcare_persona": f"{first} sees a doctor once a year and puts off smaller complaints.",
        "sports_persona": f"{first} keeps fit with {likes[0]}.",
        "travel_persona": f"{first} prefers short trips by train to long flights.",
        "hobbies_and_interests": f"{first} spends free time on {likes[0]}, {likes[1]} and {likes[2]}.",
        "hobbies_and_interests_list": str(list(likes)),
        "skills_and_expertise": f"{first} is good at {skills[0]}, {skills[1]} and {skills[2]}.",
        "skills_and_expertise_list": str(list(skills)),
    }


def _traits(chance: random.Random) -> dict[str, Any]:
    traits = {}
    for name in TRAITS:
        score = max(25, min(75, round(chance.gauss(50, 10))))
        label = "low" if score < 40 else "high" if score > 60 else "average"
        traits[name] = {"description": f"{label.capitalize()} {name}.", "label": label, "t_score": score}
    return traits


def _background(land: Land, chance: random.Random) -> dict[str, str]:
    if not land.languages:
        return {}
    first, second = chance.sample(land.languages, 2)
    religion = chance.choice(land.religions)
    return {
        "religion": religion,
        "first_language": first,
        "second_language": second,
        "third_language": "English",
        "religious_background": f"Grew up in a {religion} family and keeps the main holidays.",
        "linguistic_background": f"Speaks {first} at home, {second} with neighbours and English at work.",
    }


def read_personas(
    path: Path, locale: str, count: int, seed: int, version: str | None
) -> tuple[list[dict[str, Any]], str]:
    """``count`` personas of a Nemotron-Personas parquet file, drawn by ``seed``, and the version of the data set.

    ``path`` is the file, or a folder with ``<locale>.parquet``. Its version is known by the file's SHA-256; another
    file needs ``version``. Raises ConfigError, and MissingExtra without pyarrow.
    """
    file = path / f"{locale}.parquet" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(f"there are no personas at {file}")
    found = KNOWN_FILES.get(_sha256(file))
    if found is None and version is None:
        raise ConfigError(f"{file} is no version of Nemotron-Personas that is known here: give personas_version=…")
    if found is not None and version not in (None, found):
        raise ConfigError(f"{file} is version {found} of Nemotron-Personas, not {version}")
    try:
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise MissingExtra("pyarrow", "parquet", "reading personas from a parquet file") from None
    table = parquet.read_table(file)
    missing = [name for name in ("first_name", "age", "occupation") if name not in table.column_names]
    if missing:
        raise ConfigError(f"{file} has no column {', '.join(missing)}, so it holds no personas")
    if table.num_rows < count:
        raise ConfigError(f"{file} holds {table.num_rows} personas, and {count} are needed")
    rows: list[dict[str, Any]] = table.take(random.Random(seed).sample(range(table.num_rows), count)).to_pylist()
    return rows, str(found or version)


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
