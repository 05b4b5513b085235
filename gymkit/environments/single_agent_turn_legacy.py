"""``single_agent_turn_legacy``: the same protocol for flat task rows, answered with flat rows.

It lets a collector that knows nothing of episodes run an agent whose verdict is not its own business.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from gymkit.environments.single_agent_turn import SingleAgentTurn
from gymkit.servers.http import Refused, Request
from gymkit.wire.episodes import EpisodeRequest
from gymkit.wire.tasks import EpisodeId, episode_of, materialized


class SingleAgentTurnLegacy(SingleAgentTurn):
    """The server."""

    implementation = "single_agent_turn_legacy"

    async def _run(self, request: Request) -> dict[str, Any]:
        row = request.json_object()
        if "episode_id" in row and "task" in row:
            return self._flat(await self.episode(request.checked(EpisodeRequest)))
        self._check_owners(row)
        task = materialized(row, row.get("task_source") or self.resources.name)
        episode = episode_of(row) or EpisodeId(rollout_id=uuid4().hex)
        return self._flat(await self.episode(EpisodeRequest(episode_id=episode, task=task)))

    def _check_owners(self, row: dict[str, Any]) -> None:
        """A row for other servers is a mistake in the routing, which no retry mends."""
        source, ours = row.get("task_source"), (self.resources.name, self.agent.name, self.name)
        if source is not None and source not in ours:
            raise Refused(500, f"task_source {source!r} names none of {', '.join(ours)}", kind="misrouted")
        agent = row.get("agent_ref")
        if agent is not None and (not isinstance(agent, dict) or agent.get("name") != self.agent.name):
            raise Refused(500, f"agent_ref {agent!r} does not name {self.agent.name}", kind="misrouted")

    def _flat(self, reply: dict[str, Any]) -> dict[str, Any]:
        agent_ref = {"name": self.agent.name}
        if (failure := reply["failure"]) is None:
            return {**reply["result"], "agent_ref": agent_ref}
        row = {
            "_ng_failure_class": "environment_server_failed",
            "_ng_failure_terminal": failure["terminal"],
            "_ng_failure_message": failure["failure_reason"],
            "_ng_failure_stage": failure.get("stage"),
            "agent_ref": agent_ref,
        }
        for key, name in (("partial_response", "_ng_failure_partial_response"), ("failure_kind", "failure_kind")):
            if key in failure:
                row[name] = failure[key]
        return row
