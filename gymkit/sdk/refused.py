"""What is wrong with the arguments of a constructor, in words: values are left out, they may be secrets."""

from __future__ import annotations

from pydantic import ValidationError


def sentences(error: ValidationError) -> str:
    """Each refused argument with its reason, on one line."""
    each = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))} {_lowered(one['msg'])}" for one in each)


def _lowered(message: str) -> str:
    """Pydantic's sentence as the rest of one that begins with the argument's name."""
    return message.removeprefix("Value error, ").replace("Input should be", "must be", 1)
