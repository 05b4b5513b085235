"""Token ids on disk, in NeMo Gym's form: ``<rollout>.tokens.jsonl``, and ``<rollout>.tokens.incomplete`` as the mark.

They hold what a trainer needs and may lie apart from the records of model calls, which are larger and which a run may
do without.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gymkit.servers.call import CallRecord
from gymkit.servers.capture import Capture, Captured, FileCapture


class TokenFiles(FileCapture):
    """Records of tokens in ``directory``; ``behind`` takes the rest of each record, None leaves it out.

    Only calls under ``/training-token-capture/`` have such a record. Without ``behind``, what is read is nothing but
    tokens. Raises ConfigError for a path that is not absolute, or that cannot be made.
    """

    kind = "tokens"
    setting = "token_id_capture.dir"

    def __init__(self, directory: str | Path, behind: Capture | None = None) -> None:
        super().__init__(directory)
        self._behind = behind
        self.observed = behind is not None

    async def append(self, record: CallRecord) -> None:
        """Write the tokens, then what goes with them."""
        if record.facts.get("token_capture"):
            await super().append(record)
        if self._behind is not None:
            facts = {name: value for name, value in record.facts.items() if name != "tokens"}
            await self._behind.append(CallRecord(record.rollout, facts, record.request, record.response))

    def read(self, rollout: str) -> Captured:
        """The calls of ``rollout``, each with its tokens."""
        tokens = super().read(rollout)
        if self._behind is None:
            return Captured([_call(entry) for entry in tokens.calls], tokens.incomplete)
        return self._joined(tokens, self._behind.read(rollout))

    def clear(self, rollout: str) -> None:
        """Forget ``rollout``."""
        super().clear(rollout)
        if self._behind is not None:
            self._behind.clear(rollout)

    async def collect(self, rollout: str) -> Captured:
        """Read, and take from behind what lies there."""
        if self._behind is None:
            return await super().collect(rollout)
        tokens = await asyncio.to_thread(super().read, rollout)
        return self._joined(tokens, await self._behind.collect(rollout))

    def line(self, record: CallRecord) -> dict[str, Any]:
        """The tokens; a call that has none is there by its name, so that it is missed."""
        named = {"rollout_id": record.rollout, "model_call_id": record.facts["model_call_id"]}
        kept = {"status_code": record.facts["status_code"], "response_source": record.facts["response_source"]}
        return {**(record.facts.get("tokens") or named), **kept}

    def _joined(self, tokens: Captured, whole: Captured) -> Captured:
        entries = {entry.get("model_call_id"): entry for entry in tokens.calls}
        calls = [{**each, **_tokens(entries.get(each.get("model_call_id")))} for each in whole.calls]
        return Captured(calls, tokens.incomplete or whole.incomplete)


def _call(entry: dict[str, Any]) -> dict[str, Any]:
    """A record of a call of which only the tokens were kept."""
    names = ("model_call_id", "status_code", "response_source")
    told = {"dialect": "responses", **{name: entry.get(name) for name in names}}
    response = {"id": entry.get("response_id"), "model": entry.get("model"), "output": entry.get("output_items") or []}
    return {**told, "token_capture": True, **_tokens(entry), "response": response}


def _tokens(entry: dict[str, Any] | None) -> dict[str, Any]:
    return {"tokens": entry} if entry and "output_items" in entry else {}
