"""What failures are called: kinds to group by, classes of failure rows, stages of an episode.

A name decides nothing. Whether a reward counts stands in ``mask_sample``, whether a retry can help in
``_ng_failure_terminal``. A kind that is not listed here is kept as it came.
"""

from __future__ import annotations

import re
from typing import Final, Literal

FailureStage = Literal["admission", "seed", "agent", "verification", "cleanup"]
"""Where in an episode something failed; absent where nobody could tell."""

SHARED_KINDS: Final = {
    "transport_unreachable": "no connection could be made",
    "transport_peer_drop": "the other side closed the connection",
    "transport_timeout": "no answer in time",
    "transport_local_resource": "this machine ran out of sockets, memory or files",
    "agent_run_error": "the agent server answered with an error",
    "agent_request_failed": "the agent server gave no answer",
    "agent_timeout": "the agent took too long",
    "agent_command_not_allowed": "the agent tried a command that is not allowed",
    "judge_failed": "the judge model could not be called",
    "judge_unparseable": "the judge's answer could not be read",
    "verifier_error": "the verifier failed",
    "provider_unavailable": "the sandbox provider did not answer",
    "provider_quota_exhausted": "the sandbox provider's quota is spent",
    "provider_oom_killed": "the sandbox ran out of memory",
    "session_lost": "the session is gone",
    "session_expired": "the session was too old",
    "session_release_failed": "the session could not be closed",
    "cancelled": "it was cancelled before it began",
    "kill_shaped": "it was killed",
    "shutdown": "the servers went down",
    "persistence_failed": "the result could not be saved",
    "cohort_incomplete": "rollouts that belong together are not all there",
}
"""The vocabulary shared with NeMo Gym, each name with its meaning."""

REMOTE_AGENT_KINDS: Final = {
    "unreachable": "no connection to the service could be made",
    "timeout": "the call or the rollout took too long",
    "redirect": "the service answered with a redirect, which is never followed",
    "http_status": "the service answered with an error status",
    "not_json": "the service's answer is not JSON",
    "invalid_response": "the service's answer is not a Responses API response",
    "seed": "the environment could not be seeded",
    "verify": "the environment could not score the rollout",
    "agent_error": "gymkit itself failed",
}
"""What the remote agent's failure rows say in ``failure_kind``."""

NO_REWARD: Final = "no_reward"
"""Kind given to a main row that carries no numeric reward."""

FAILURE_CLASSES: Final = {
    "remote_agent_error": "the remote agent's service or its environment failed",
    "agent_request_failed": "the agent server gave no answer, or one that says to come back later",
    "agent_run_error": "the agent server answered with an error",
    "environment_server_failed": "the environment server reported a failure",
    "judge_failed": "the judge model could not be called",
    "cancelled": "it was never started",
}
"""What ``_ng_failure_class`` says in a failure row; agents may use labels of their own."""

_NAMESPACED: Final = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*")


def is_known_kind(name: str) -> bool:
    """Say whether ``name`` is a kind listed here or of the form ``<server>:<kind>``."""
    listed = name in SHARED_KINDS or name in REMOTE_AGENT_KINDS or name == NO_REWARD
    return listed or _NAMESPACED.fullmatch(name) is not None
