"""Ids of what we make ourselves."""

from __future__ import annotations

import uuid


def mint(prefix: str) -> str:
    """A new id, such as ``resp_3f…``: NeMo Gym's form."""
    return f"{prefix}_{uuid.uuid4().hex}"
