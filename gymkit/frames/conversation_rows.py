"""What is decoded of a row of simulated users: each frame takes what it needs and skips the rest at reading speed."""

from __future__ import annotations

from typing import Any

import msgspec

from gymkit.frames.messages import Talked
from gymkit.frames.rows import Stamped


class Warned(msgspec.Struct, gc=False):
    """A warning of the simulation."""

    kind: Any = None
    """Name of what it warns of."""


class Outcome(msgspec.Struct, gc=False):
    """How a simulation ended."""

    status: Any = None
    """ok, completed_with_warnings or failed."""
    failure_class: Any = None
    """What went wrong."""
    failure_attribution: Any = None
    """Whose fault it was."""
    failure_detail: Any = None
    """What went wrong, in words."""
    n_turns: Any = None
    """Turns of the assistant."""
    n_tool_calls: Any = None
    """Tool calls, as the simulation counts them."""
    early_stop: Any = None
    """Whether the user was finished before its last turn."""
    warnings: list[Warned] | None = None
    """What to know before believing it."""


class Retrieved(msgspec.Struct, gc=False):
    """How documents were found."""

    degraded: Any = None
    """Whether by words, although by vectors was asked for."""


class Ended(msgspec.Struct, gc=False):
    """A simulation without its conversation."""

    probe_type: Any = None
    """What it was about."""
    locale: Any = None
    """In which language and country."""
    persona_name: Any = None
    """Who the user was."""
    trajectory_id: Any = None
    """Its name."""
    simulation_outcome: Outcome | None = None
    """How it ended."""
    retrieval: Retrieved | None = None
    """How documents were found; only where they are searched."""


class Fault(msgspec.Struct, gc=False):
    """Something that the user did wrong."""

    check: Any = None
    """Which rule it broke."""
    turn: Any = None
    """Which of its messages."""
    quote: Any = None
    """What it said."""
    reason: Any = None
    """What is wrong with it."""
    by: Any = None
    """Who found it: a rule or a judge."""


class Audit(msgspec.Struct, gc=False):
    """What is known of the user."""

    checks: dict[str, Any] | None = None
    """Each check: kept, broken or unknown."""
    faults: list[Fault] | None = None
    """What it did wrong."""
    masks: list[str] | None = None
    """Which faults mask an episode."""


class VerifierData(msgspec.Struct, gc=False):
    """The verifier's evidence."""

    probe_type: Any = None
    """What the episode was about."""
    scorer_name: Any = None
    """The probe's scorer."""
    scorer_state: Any = None
    """Whether it could score."""
    scorer_status_proposal: Any = None
    """Whether the conversation passes."""
    user_audit: Audit | None = None
    """What is known of the user."""


class Verification(msgspec.Struct, gc=False):
    """The verifier's reply."""

    scenario_completed: Any = None
    """Whether the conversation was completed and passes."""
    verifier_data: VerifierData | None = None
    """Its evidence."""


class Tokens(msgspec.Struct, gc=False):
    """Tokens of one call."""

    input_tokens: Any = None
    """Read."""
    output_tokens: Any = None
    """Written."""


class Replied(msgspec.Struct, gc=False):
    """A response without its text."""

    model: Any = None
    """Name of the model."""
    usage: Tokens | None = None
    """Its tokens."""


class Invocation(msgspec.Struct, gc=False):
    """One time that a model spoke, without the texts."""

    sequence: Any = None
    """Its place in the episode."""
    role: Any = None
    """Who spoke."""
    response: Replied | None = None
    """What came."""
    termination_reason: Any = None
    """How the conversation ended, on the last word of a participant."""
    seconds: Any = None
    """Wall clock."""


class TalkRow(Stamped, gc=False):
    """A result with its conversation."""

    usersim_result: Talked | None = None
    """The simulation."""


class InvocationRow(Stamped, gc=False):
    """A result with the record of who spoke when."""

    invocations: list[Invocation] | None = None
    """In order."""


class OutcomeRow(Stamped, gc=False):
    """A result with how its simulation ended."""

    reward: Any = None
    """The reward as recorded."""
    mask_sample: Any = None
    """Whether it is no measurement."""
    failure_kind: Any = None
    """What went wrong."""
    usersim_result: Ended | None = None
    """The simulation."""
    verification: Verification | None = None
    """The verifier's reply."""


class AuditRow(Stamped, gc=False):
    """A result with what is known of its user."""

    verification: Verification | None = None
    """The verifier's reply."""
