"""Which probes a locale can play: some of the package's banks do not exist in every language."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from inspect import signature
from typing import Any

from gymkit.usersim.package import load


def left_out(locale: str, probes: Iterable[str]) -> dict[str, str]:
    """Those of ``probes`` that cannot be played in ``locale``, each with the reason. Loads banks. Raises MissingExtra.

    ``prepare`` makes rows for every probe but these by default, and takes one that is named for an error.
    """
    found = {probe: _absence(locale, probe) for probe in probes}
    return {probe: reason for probe, reason in found.items() if reason is not None}


@cache
def _absence(locale: str, probe: str) -> str | None:
    load()
    from usersim.engine.core.locale import india_variant
    from usersim.engine.core.probes import resolve_probe

    loader = getattr(resolve_probe(probe), "bank_loader", None)
    if loader is None:
        return None
    variant = india_variant(locale)  # one of India's further languages, which has English banks to translate from
    problem = _problem(loader, locale)
    if problem is None or (variant is not None and _problem(loader, variant.base_locale) is None):
        return None
    return f"User Sim has no bank of tasks for it in {locale} ({problem})"


def _problem(loader: Callable[..., Any], locale: str) -> str | None:
    """Why ``loader`` has no bank of ``locale``; the package keeps those that it has loaded."""
    from usersim.engine.core._assets import default_assets_dir

    try:
        loader(locale) if signature(loader).parameters else loader()
    except Exception as error:  # noqa: BLE001 - each bank fails in its own way, and all of them mean that it is not there
        return " ".join(str(error).split()).replace(f"{default_assets_dir()}/", "")[:300]
    return None
