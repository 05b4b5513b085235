"""The environment server of an agent that has none: a generated ``legacy_agent`` relay."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from gymkit.config.tree import Tree
from gymkit.wire.names import SUFFIX, relay_name

AGENTS = "responses_api_agents"
ENVIRONMENTS = "environment_servers"


def generated(tree: Tree) -> Tree:
    """Relays for the agents in ``tree`` that no environment server references: instance name to block."""
    relays: Tree = {}
    fronted = _fronted(tree)
    for agent, block in tree.items():
        agents = block.get(AGENTS) if isinstance(block, dict) else None
        if not isinstance(agents, dict) or len(agents) != 1 or agent in fronted:
            continue
        name = _free(relay_name(agent, next(iter(agents))), agent, {**tree, **relays})
        relays[name] = {
            ENVIRONMENTS: {"legacy_agent": {"entrypoint": "app.py", "agent_server": {"type": AGENTS, "name": agent}}}
        }
    return relays


def agents_of(settings: Any) -> list[str]:
    """The agents that an environment server's settings reference, in their order."""
    if not isinstance(settings, dict):
        return []
    return [
        field["name"]
        for key, field in settings.items()
        if isinstance(field, dict)
        and isinstance(field.get("name"), str)
        and field.get("type", AGENTS if key == "agent_server" else None) == AGENTS
    ]


def _fronted(tree: Tree) -> set[str]:
    blocks = [block[ENVIRONMENTS] for block in tree.values() if isinstance(block, dict) and ENVIRONMENTS in block]
    return {
        agent
        for block in blocks
        if isinstance(block, dict)
        for settings in block.values()
        for agent in agents_of(settings)
    }


def _free(name: str, agent: str, taken: Container[str]) -> str:
    if name in taken:
        name = agent + SUFFIX
    while name in taken:
        name += SUFFIX
    return name
