"""What the contract asks of servers, as rules that any of them can be held to: ours, yours, or NeMo Gym's.

::

    @pytest.mark.parametrize("rule", conformance.RULES["agent"], ids=str)
    def test_my_agent(rule, url):
        rule.check(url, task)          # AssertionError, a skip, or nothing

A URL, a route, or an app in this process: each rule talks to the server over its routes and to nothing else. ``task``
is one task row; a row in materialized form for an environment server that plays episodes. From a shell:
``gymkit check --kind agent URL``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gymkit.testing.conformance import agents, environments, resources
from gymkit.testing.conformance.rule import Broken, NotApplicable, Peer, Rule

__all__ = ["RULES", "Broken", "NotApplicable", "Peer", "Rule"]

RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "agent": agents.RULES,
    "environment": environments.RULES,
    "resources": resources.RULES,
}
"""The rules by kind of server."""
