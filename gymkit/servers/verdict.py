"""What a verifier says of one rollout: a number, a ``Verdict``, or the verdict's fields as a dict."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from gymkit.wire import codec

REASON: Final = 2000
"""Characters of a failure's reason, at most."""

_OWN: Final = ("reward", "mask_sample", "failure_kind", "failure_reason", "reward_components")
_ECHOED: Final = frozenset({"responses_create_params", "response", "gymkit"})
_MEANT: Final = {
    "score": "reward",
    "mask": "mask_sample",
    "masked": "mask_sample",
    "kind": "failure_kind",
    "reason": "failure_reason",
    "components": "reward_components",
}
"""What people write, to what is read: silently kept as an extra, each of these would change what a row means."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier says of one rollout, where a bare number is not enough."""

    reward: float
    """The scalar reward, finite, by convention 0 to 1."""
    mask_sample: bool = False
    """True: the reward is not a measurement of the agent and no mean may contain it."""
    failure_kind: str | None = None
    """A name for what went wrong, to group by."""
    failure_reason: str | None = None
    """A sentence for what went wrong."""
    reward_components: Mapping[str, float] | None = None
    """Decoupled objectives, the same keys for every task."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the reply; top-level numbers become metrics."""

    @classmethod
    def masked(cls, kind: str, reason: str) -> Self:
        """No measurement: the reward stands for nothing, and says why."""
        return cls(0.0, mask_sample=True, failure_kind=kind, failure_reason=reason)

    @classmethod
    def of(cls, value: object) -> Verdict:
        """The verdict in what a verifier returned, checked. Raises TypeError or ValueError with half a sentence."""
        if isinstance(value, Mapping):
            value = _from_fields(value)
        verdict = value if isinstance(value, Verdict) else cls(_number("the reward", value))
        return verdict._checked()

    def fields(self) -> dict[str, Any]:
        """The verdict as the fields of a verify reply; what is unknown is absent."""
        fields: dict[str, Any] = {**self.extras, "reward": float(self.reward), "mask_sample": self.mask_sample}
        for name in ("failure_kind", "failure_reason"):
            if (value := getattr(self, name)) is not None:
                fields[name] = value
        if self.reward_components is not None:
            fields["reward_components"] = {name: float(value) for name, value in self.reward_components.items()}
        return fields

    def _checked(self) -> Verdict:
        _number("the reward", self.reward)
        for name, value in (self.reward_components or {}).items():
            _number(f"the component {name!r}", value)
        for name in self.extras:
            if name in _ECHOED or name.startswith(("_ng_", "ng_")):
                raise ValueError(f"gave a field {name!r}, which is taken: call it something else")
        try:
            codec.dumps(dict(self.extras))
        except (TypeError, ValueError) as error:
            raise TypeError(f"gave fields that are not JSON: {error}") from None
        return self


Verified = float | Mapping[str, Any] | Verdict
"""What a verifier may return."""


def judge_failed(body: Mapping[str, Any], error: Exception) -> dict[str, Any]:
    """The reply to the verify request ``body`` when the judge could not be called: a row of the failures file.

    It is answered with 200, as at NeMo Gym, and ``_ng_failure_class`` keeps it out of every mean.
    """
    reason = f"{type(error).__name__}: {error}"[:REASON]
    settings = body.get("instance_config")
    return {
        **{name: value for name, value in body.items() if name != "_ng_rollout_id"},
        **Verdict.masked("judge_failed", reason).fields(),
        "instance_config": {**(settings if isinstance(settings, Mapping) else {}), "mask_sample": True},
        "_ng_failure_class": "judge_failed",
        "_ng_failure_judge_error": reason,
    }


def _from_fields(fields: Mapping[Any, Any]) -> Verdict:
    for name in fields:
        if not isinstance(name, str):
            raise TypeError(f"gave a field whose name is no text: {name!r}")
        if name not in _OWN and (meant := _MEANT.get(name.lower()) or _nearly(name)):
            raise ValueError(f"gave a field {name!r}, which has no meaning: write {meant!r}")
    masked, components = fields.get("mask_sample", False), fields.get("reward_components")
    if not isinstance(masked, bool):
        raise TypeError(f"gave mask_sample={masked!r}: True or False is needed")
    if "reward" not in fields and not masked:
        raise ValueError(f"gave no reward, only {', '.join(fields) or 'an empty dict'}")
    if not (components is None or isinstance(components, Mapping)):
        raise TypeError("gave reward_components that are no dict of names to numbers")
    for name in ("failure_kind", "failure_reason"):
        if not isinstance(fields.get(name), str | None):
            raise TypeError(f"gave a {name} that is no text: {fields[name]!r}")
    return Verdict(
        _number("the reward", fields.get("reward", 0.0)),
        mask_sample=masked,
        failure_kind=fields.get("failure_kind"),
        failure_reason=fields.get("failure_reason"),
        reward_components=components,
        extras={name: value for name, value in fields.items() if name not in _OWN},
    )


def _nearly(name: str) -> str | None:
    """The field that ``name`` is a slip of; a name of one's own may well hold the word reward."""
    return next(iter(difflib.get_close_matches(name, _OWN, n=1, cutoff=0.85)), None)


def _number(what: str, value: object) -> float:
    """``value`` as a finite float; numpy's numbers are numbers, text is not."""
    if value is None or isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(f"gave {value!r:.60} as {what}, which is no number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"gave {number} as {what}, which is not finite")
    return number
