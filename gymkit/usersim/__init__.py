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

The same rows and models make the same episodes and verdicts as NeMo Gym 0.7.0's own servers: calls in order, their
requests, messages, reward, mask and components. A test that plays both sides keeps this list of what differs:

- A scorer whose own judge call failed neither passes nor is it an unmasked zero: ``verifier_error``.
- A judge's score outside its scale is ``judge_failed``, and no reward above 1.
- Tool calls above the limit are answered with an error, so that the transcript stays valid.
- The user is audited (``user_audit``); an episode that it spoiled is masked as ``usersim:user_fault``.
- A user that never gets to speak is a masked zero with the simulation's kind, and not a terminal failure without a row.
- Retrieval by words, where vectors were wanted, is told: ``retrieval``, and a warning in the outcome.
- Failures have a kind that names the role; a supporting endpoint's 4xx is terminal, since asking again cannot help.
- A reply that holds nothing has no message; the response is ``incomplete`` where the endpoint does not say why.
- Rows tell more (``gymkit``, ``seconds`` of an invocation, ``ng_agent_observations`` where calls are captured), an
  assistant's mistake has all the fields of a verdict, and sentences are worded here.
"""

from gymkit.usersim.preparation import prepare as prepare

__all__ = ["prepare"]
