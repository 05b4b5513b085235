"""An answer that is no reply: what a scripted service or model gives on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fault:
    """An answer that is no response: a status, headers and a body, after ``seconds`` of silence."""

    status: int = 500
    """HTTP status."""
    body: bytes = b"the service is broken"
    """The body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers, such as ``location``."""
    seconds: float = 0.0
    """How long it stays silent first."""
