"""The public names: sorted, complete, loaded lazily, and importing them does nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import gymkit

HEAVY = (
    "pandas",
    "numpy",
    "ipywidgets",
    "IPython",
    "starlette",
    "uvicorn",
    "aiohttp",
    "httpx",
    "pydantic",
    "omegaconf",
    "scipy",
)


def test_names_are_sorted_and_each_can_be_had() -> None:
    assert gymkit.__all__ == sorted(gymkit.__all__)
    for name in gymkit.__all__:
        assert getattr(gymkit, name) is not None
    assert dir(gymkit) == gymkit.__all__


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Enviroment'"):
        gymkit.Enviroment  # noqa: B018


def test_a_class_says_that_it_is_gymkits() -> None:
    for name in gymkit.__all__:
        value = getattr(gymkit, name)
        if isinstance(value, type):
            assert f"{value.__module__}.{value.__qualname__}" == f"gymkit.{name}"


def test_importing_gymkit_loads_nothing_heavy() -> None:
    code = "import gymkit, json, sys; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60).stdout
    )
    assert [name for name in loaded if name.split(".")[0] in HEAVY] == []


def test_an_env_is_ready_without_pandas_or_widgets() -> None:
    code = "import gymkit, json, sys; gymkit.Env('counter').session(0); print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60).stdout
    )
    assert [
        name for name in loaded if name.split(".")[0] in ("pandas", "numpy", "ipywidgets", "scipy", "omegaconf")
    ] == []
