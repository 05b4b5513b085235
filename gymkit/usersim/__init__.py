"""Simulated users: one model plays the user, another is under test, a third judges.

=============== ==================================================================
module          holds
=============== ==================================================================
runtime         ``EpisodeRuntime``: an episode that stops wherever a model speaks
package         NeMo User Sim's own episodes (extra ``usersim``)
scenario        episodes of a ``Scenario`` of one's own
preparation     ``prepare``: tasks
environment     the environment server: sessions, roles, failures
resources       the resources server: checks at seeding, verdicts, masks
audit           whether the simulated user kept to its part
=============== ==================================================================
"""

from gymkit.usersim.preparation import prepare as prepare

__all__ = ["prepare"]
