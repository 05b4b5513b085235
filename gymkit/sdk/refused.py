"""What is wrong with the arguments of a constructor, in words: values are left out, they may be secrets."""

from __future__ import annotations

from pydantic import ValidationError


def sentences(error: ValidationError) -> str:
    """Each refused argument with its reason, on one line."""
    each = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}" for one in each)
