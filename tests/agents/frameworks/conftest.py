from __future__ import annotations

import tempfile
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _private_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rollouts make their folders here, so that one left behind is seen."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
