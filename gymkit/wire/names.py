"""Names that servers give each other, and that rows carry."""

from __future__ import annotations

SUFFIX = "_environment_server"
"""Ends the name of a generated relay."""


def relay_name(agent: str, implementation: str) -> str:
    """NeMo Gym's name for the relay of ``agent``.

    The implementation's name (or else ``_agent``) is cut from the end of the agent's name and ``_environment_server``
    appended: ``shop_simple_agent`` of ``simple_agent`` gives ``shop_environment_server``; an agent named just like its
    implementation keeps the name: ``remote_agent_environment_server``.
    """
    stem = agent
    for ending in (f"_{implementation}", implementation):
        stem = stem.removesuffix(ending)
    if stem == agent:
        stem = agent.removesuffix("_agent")
    return (stem.rstrip("_") or implementation) + SUFFIX
