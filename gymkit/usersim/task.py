"""A task of simulated users, and what a resolved row has to have before an episode may begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict

from gymkit.errors import WireError
from gymkit.usersim.personas import SYNTHETIC
from gymkit.usersim.runtime import Role
from gymkit.wire import codec
from gymkit.wire.responses import check_request

TASKSET: Final = "nemo_user_sim:validation"
"""The task set of prepared rows, by NeMo Gym's name."""

REQUIRED: Final = ("persona", "probe_type", "conversation_language", "trajectory_id", "usersim_config")


def _params(by_role: dict[Role, dict[str, Any]]) -> dict[Role, dict[str, Any]]:
    for role, params in by_role.items():
        if "input" in params:
            raise ValueError(f"{role}.input: the conversation is the input, so it cannot be given here")
        try:
            check_request({**params, "input": []})
        except WireError as error:
            raise ValueError(f"{role}: {error}") from None
    return by_role


class UserSimTask(BaseModel):
    """What an environment server is given as ``task_input``."""

    model_config = ConfigDict(extra="forbid")

    task_id: str | None = None
    """The task's name, as it was prepared."""
    resolved_row: dict[str, Any]
    """Persona, probe and settings, resolved."""
    role_request_params: Annotated[dict[Role, dict[str, Any]], AfterValidator(_params)] = {}
    """Responses parameters by role, underneath what the episode asks of that role."""


def materialized(row: Mapping[str, Any], taskset: str = TASKSET) -> dict[str, Any]:
    """A prepared row (``task_id``, ``resolved_row``, perhaps ``role_request_params``) as a collector takes it."""
    if isinstance(row.get("task_id"), Mapping):
        return dict(row)
    fields = {key: row[key] for key in ("resolved_row", "role_request_params") if row.get(key) is not None}
    return {
        "task_id": {"taskset": taskset, "task_id": row["task_id"]},
        "task_input": {"task_id": row["task_id"], **fields},
    }


def row_problems(row: Mapping[str, Any], revision: str, personas_version: str) -> list[str]:
    """What keeps ``row`` from being seeded: one ``field: reason`` each.

    ``revision`` and ``personas_version`` are those that the server is configured for.
    """
    found = [f"{name}: is missing or empty" for name in REQUIRED if not row.get(name)]
    if row.get("probe_variant") == "guarded":
        found.append("probe_variant: guarded rows are not played, since their user calls tools of its own")
    return found + _provenance_problems(row.get("usersim_provenance"), revision, personas_version)


def _provenance_problems(text: Any, revision: str, personas_version: str) -> list[str]:
    where = "usersim_provenance"
    try:
        told = codec.loads(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else text
    except ValueError as error:
        return [f"{where}: is not JSON: {error}"]
    if not isinstance(told, Mapping):
        return [f"{where}: must be a JSON object in a string"]
    found = []
    if told.get("code_sha") != revision:
        found.append(
            f"{where}.code_sha: the row was made by revision {told.get('code_sha')!r}, and this server takes "
            f"{revision!r} (usersim_revision)"
        )
    if (version := told.get("nemotron_personas_version")) not in (SYNTHETIC, personas_version):
        found.append(f"{where}.nemotron_personas_version: is {version!r}, neither synthetic nor {personas_version!r}")
    return found
