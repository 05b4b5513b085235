"""What a resolved row is known by: the digest that shows it did not change between seeding and verification."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(resolved_row: Mapping[str, Any]) -> str:
    """SHA-256, in hex, over the row as JSON with sorted keys and no spaces, in UTF-8: what NeMo Gym stores as well."""
    text = json.dumps(resolved_row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
