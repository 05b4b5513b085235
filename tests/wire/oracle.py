"""The openai package's own types as the judge of what is a valid request and a valid response."""

from __future__ import annotations

from typing import Any

from openai.types.responses import Response, ResponseInputItem, Tool
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter, ValidationError

RESPONSE: TypeAdapter[Any] = TypeAdapter(Response)
_SETTINGS: TypeAdapter[Any] = TypeAdapter(ResponseCreateParamsNonStreaming)
_INPUT: TypeAdapter[Any] = TypeAdapter(str | list[ResponseInputItem])
_TOOLS: TypeAdapter[Any] = TypeAdapter(list[Tool])


def accepts_response(data: Any) -> bool:
    """Whether the package takes ``data`` for a response."""
    return _accepts(RESPONSE, data)


def accepts_request(data: Any) -> bool:
    """Whether the package takes ``data`` for a request.

    Its request type checks lists only when they are read, so ``input`` and ``tools`` are judged by its models for them.
    """
    if not isinstance(data, dict):
        return False
    rest = {key: value for key, value in data.items() if key not in ("input", "tools")}
    lists = [(_INPUT, "input"), (_TOOLS, "tools")]
    return _accepts(_SETTINGS, rest) and all(_accepts(judge, data[key]) for judge, key in lists if key in data)


def _accepts(judge: TypeAdapter[Any], data: Any) -> bool:
    try:
        judge.validate_python(data)
    except ValidationError:
        return False
    return True
