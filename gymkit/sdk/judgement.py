"""The form of a judge's answer: what the model is shown of it, and the check of what it answered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from gymkit.errors import ConfigError, JudgeFailed, JudgeUnparseable, MissingExtra
from gymkit.wire import codec
from gymkit.wire.problems import sentences

Shape = type[BaseModel] | Mapping[str, Any]
"""A pydantic model, or the JSON schema of an object."""

_SCALE_ERRORS: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_SCALE_RULES: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_SHOWN: Final = 200


class Score(BaseModel):
    """What a judge answers with where nothing else is asked of it."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(description="Why, in a sentence or two.")
    """Why, in the judge's words; asked for first, so that the score follows from it."""
    score: float
    """How good, on the judge's scale."""
    _scale: tuple[float, float] = (0.0, 1.0)

    @property
    def reward(self) -> float:
        """The score on a scale from 0 to 1."""
        low, high = self._scale
        return (self.score - low) / (high - low)


class Form:
    """The form of an answer: the schema that the model is shown, and the check of what it answered."""

    schema: dict[str, Any]
    """What the model is shown."""

    def read(self, text: str) -> Any:
        """The answer that the judge wrote. Raises JudgeUnparseable, or JudgeFailed for a score outside its scale."""
        try:
            value = codec.loads(_bare(text).encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise JudgeUnparseable(f"the judge's answer is not JSON ({error}): {excerpt(text)}") from None
        return self.checked(value, text)

    def checked(self, value: Any, text: str) -> Any:
        """The answer in ``value``, the JSON in ``text``."""
        raise NotImplementedError


class _Typed(Form):
    """A pydantic model."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model
        self.schema = _closed(model.model_json_schema())

    def checked(self, value: Any, text: str) -> Any:
        try:
            return self._model.model_validate_json(codec.dumps(value), strict=True)
        except ValidationError as error:
            outside = all(each["type"] in _SCALE_ERRORS for each in error.errors(include_url=False))
            raise _misfit("; ".join(sentences(error, value)), outside, text) from None


class _Scored(_Typed):
    """A score on a scale."""

    def __init__(self, scale: tuple[float, float]) -> None:
        low, high = scale
        bounded = Annotated[float, Field(ge=low, le=high, description=f"From {low:g} to {high:g}.")]
        super().__init__(create_model("Score", __base__=Score, score=(bounded, ...)))
        self._scale = scale

    def checked(self, value: Any, text: str) -> Any:
        score = super().checked(value, text)
        score._scale = self._scale
        return score


class _Schema(Form):
    """A JSON schema of an object."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            from jsonschema import Draft202012Validator
            from jsonschema.exceptions import SchemaError
        except ImportError:
            raise MissingExtra("jsonschema", "judge", "a judge whose answer is a JSON schema") from None
        if schema.get("type") != "object":
            raise ConfigError('judge: answer must be a pydantic model or a JSON schema with "type": "object"')
        try:
            Draft202012Validator.check_schema(dict(schema))
        except SchemaError as error:
            raise ConfigError(f"judge: answer is no JSON schema: {error.message}") from None
        self.schema = dict(schema)
        self._validator = Draft202012Validator(self.schema)

    def checked(self, value: Any, text: str) -> Any:
        errors = list(self._validator.iter_errors(value))
        if not errors:
            return value
        told = "; ".join(f"{'.'.join(map(str, each.path)) or 'the whole'}: {each.message}" for each in errors)
        raise _misfit(told, all(each.validator in _SCALE_RULES for each in errors), text)


def form_of(answer: Shape | None, scale: tuple[float, float] | None) -> Form:
    """The form for ``answer``, or the default one on ``scale``. Raises ConfigError or MissingExtra."""
    if answer is None:
        return _Scored(_checked_scale(scale or (0.0, 1.0)))
    if scale is not None:
        raise ConfigError("judge: scale is for the default form; bound the numbers of your own in answer=")
    if isinstance(answer, Mapping):
        return _Schema(answer)
    if isinstance(answer, type) and issubclass(answer, BaseModel):
        return _Typed(answer)
    raise ConfigError(f"judge: answer must be a pydantic model or a JSON schema, not {answer!r:.80}")


def _checked_scale(scale: tuple[float, float]) -> tuple[float, float]:
    low, high = scale
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(f"judge: scale={scale!r} must be the lowest and the highest score")
    return (float(low), float(high))


def _misfit(told: str, outside: bool, text: str) -> JudgeFailed | JudgeUnparseable:
    if outside:
        return JudgeFailed(f"the judge scored outside its scale: {told}")
    return JudgeUnparseable(f"the judge's answer has another form ({told}): {excerpt(text)}")


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its objects closed, which strict mode needs; what it names already stays."""
    for each in (schema, *schema.get("$defs", {}).values()):
        if each.get("type") == "object":
            each.setdefault("additionalProperties", False)
    return schema


def _bare(text: str) -> str:
    """The text without the fence that some models put around JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text


def excerpt(text: str) -> str:
    """The beginning of what a judge wrote, quoted."""
    shown = " ".join(text.split())
    return repr(shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…")
