"""One conversation with a simulated user, as it is read in a cell or as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gymkit.views.html import escape

_COLOURS = {"user": "#1f6feb22", "assistant": "#8884", "tool": "#8882"}


class Dialogue:
    """A finished episode: ``row`` is all of it, ``str()`` the conversation; in a cell it is laid out."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.row = dict(row)

    @property
    def reward(self) -> float | None:
        """The reward; None where it is masked, since it then is no measurement."""
        return None if self.row["mask_sample"] else float(self.row["reward"])

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation, as chat messages."""
        return list(self.row["usersim_result"]["conversation_messages"])

    def _lines(self) -> Iterator[tuple[str, str]]:
        for message in self.messages:
            if message.get("content"):
                yield message["role"], str(message["content"])
            for call in message.get("tool_calls") or ():
                yield message["role"], f"→ {call['function']['name']}({call['function']['arguments']})"

    def _verdict(self) -> str:
        kind = self.row.get("failure_kind")
        if self.row["mask_sample"]:
            return f"masked: {kind}: {self.row.get('failure_reason')}"
        return f"reward {self.row['reward']:.3g}" + (f" ({kind})" if kind else "")

    def __str__(self) -> str:
        return "\n".join([*(f"{role:>9}: {text}" for role, text in self._lines()), f"[{self._verdict()}]"])

    def __repr__(self) -> str:
        return f"<Dialogue of {len(self.messages)} messages, {self._verdict()}>"

    def _repr_html_(self) -> str:
        style = "border-radius:6px;padding:4px 8px;margin:3px 0;white-space:pre-wrap"
        said = "".join(
            f'<div style="background:{_COLOURS.get(role, "none")};{style}"><b>{escape(role)}</b> {escape(text)}</div>'
            for role, text in self._lines()
        )
        return f'<div style="max-width:50em">{said}<p><b>{escape(self._verdict())}</b></p></div>'
