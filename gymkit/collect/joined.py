"""Whose a captured call is. An agent's reference has to match exactly one call; whatever else is a gap, not a guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gymkit.collect.captured import Call

Record = Mapping[str, Any]
Name = tuple[str | None, ...]
"""What a call can be called: its own id, or its server and the id of its response."""


@dataclass(slots=True)
class Joined:
    """Calls by invocation."""

    owned: dict[str, list[Call]] = field(default_factory=dict)
    """The calls of each invocation, in the order in which it names them."""
    unresolved: dict[str, list[Record]] = field(default_factory=dict)
    """References that name no one call."""
    gaps: list[dict[str, Any]] = field(default_factory=list)
    """What could not be joined."""

    def references(self, invocation: str) -> list[dict[str, Any]]:
        """What the invocation's calls are called, those that were found first."""
        found = [call.reference() for call in self.owned.get(invocation, ())]
        return found + [dict(each) for each in self.unresolved.get(invocation, ())]


def join(invocations: Sequence[Record], calls: Sequence[Call]) -> Joined:
    """Give each of ``calls`` to the one invocation that names it, or whose id its client's session has."""
    joined, taken, names = Joined(), set[int](), _names(calls)
    for invocation in invocations:
        name = invocation["invocation_id"]
        owned = joined.owned.setdefault(name, [])
        for reference in invocation.get("model_calls") or ():
            found = names.get(_name_of(reference), ())
            if len(found) == 1 and found[0].index not in taken:
                owned.append(found[0])
                taken.add(found[0].index)
            else:
                joined.unresolved.setdefault(name, []).append(reference)
                code = _problem(found, calls)
                joined.gaps.append({"code": code, "invocation_id": name, "detail": _named(reference)})
    for call in calls:
        session = call.record.get("client_session_id")
        if call.index not in taken and session in joined.owned:
            joined.owned[session].append(call)
            taken.add(call.index)
    if invocations and not all(joined.owned.values()) and len(taken) < len(calls):
        _name_orphans(joined, calls, taken)
    return joined


def _names(calls: Sequence[Call]) -> dict[Name, list[Call]]:
    names: dict[Name, list[Call]] = {}
    for call in calls:
        names.setdefault((call.id,), []).append(call)
        if call.said.response_id is not None:
            names.setdefault((call.model_ref.get("name"), call.said.response_id), []).append(call)
    return names


def _name_of(reference: Record) -> Name:
    if (named := reference.get("model_call_id")) is not None:
        return (named,)
    return (reference.get("model_ref") or {}).get("name"), reference.get("response_id")


def _problem(found: Sequence[Call], calls: Sequence[Call]) -> str:
    if not calls:
        return "model_call_reference_unavailable"
    kind = "unmatched" if not found else "ambiguous" if len(found) > 1 else "conflict"
    return f"model_call_reference_{kind}"


def _named(reference: Record) -> str:
    if (named := reference.get("model_call_id")) is not None:
        return f"model call {named}"
    return f"response {reference.get('response_id')} of {(reference.get('model_ref') or {}).get('name')}"


def _name_orphans(joined: Joined, calls: Sequence[Call], taken: set[int]) -> None:
    free = [call for call in calls if call.index not in taken]
    detail = f"{len(free)} of {len(calls)} captured calls belong to no invocation"
    joined.gaps.append({"code": "model_call_ownership_unavailable", "detail": detail})
