"""What a verifier is given and what it answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gymkit.wire.problems import wire_error
from gymkit.wire.responses import Request, Response

Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A JSON number that is finite; neither a boolean nor a number in quotes."""


class VerifyRequest(BaseModel):
    """A finished trajectory with the task that it answers; the task's own fields stand beside these."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: Request
    """What the agent was asked first."""
    response: Response
    """The whole trajectory in one response."""


class VerifyReply(BaseModel):
    """The verdict, with the request's fields echoed; a server may add fields of its own."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: Request
    """The request's."""
    response: Response
    """The request's."""
    reward: Finite
    """How well the task was done, by convention from 0 to 1."""
    mask_sample: bool = False
    """True: the reward is no measurement of the agent, and no mean may count it."""
    failure_kind: str | None = None
    """Name to group failures by; see ``gymkit.wire.failures``. An unknown name is kept."""
    failure_reason: str | None = None
    """What went wrong, in words."""
    reward_components: dict[str, Finite] | None = None
    """Objectives scored apart, the same names for every task of an environment."""


def check_verify_reply(data: object) -> None:
    """Check that ``data`` is a verifier's reply. Raises WireError with one ``path: reason`` a problem.

    It checks the echoed response as well, because that is what the result row keeps.
    """
    try:
        VerifyReply.model_validate(data)
    except ValidationError as error:
        raise wire_error("the verify reply", error, data) from None
