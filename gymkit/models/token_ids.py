"""Token ids and logprobs out of a chat completion, in the ways that services return them."""

from __future__ import annotations

from typing import Any

from gymkit.wire.dialects.tokens import TOKEN_FIELDS, tokens_of

ASKED = {"logprobs": True, "return_token_ids": True}
"""What to lay under a request: vLLM then says ``prompt_token_ids`` and each choice's ``token_ids``."""


class MissingTokens(Exception):
    """The service did not return what was asked for."""


def take_tokens(completion: dict[str, Any], prompt_ids: list[int] | None) -> dict[str, Any]:
    """Take the three token fields of the first choice out of ``completion``. Raises MissingTokens.

    ``prompt_ids`` are the prompt's. A service may also have put all three on the message, as NeMo Gym's do.
    """
    choice = completion["choices"][0]
    written = choice.pop("token_ids", None)
    tokens = tokens_of(choice["message"])
    if tokens:
        for name in tokens:
            del choice["message"][name]
        return tokens
    entries = (choice.get("logprobs") or {}).get("content") or []
    counted = (completion.get("usage") or {}).get("completion_tokens")
    if written is None:
        written = [entry["id"] for entry in entries if isinstance(entry.get("id"), int)]
        _complete(written, counted)
    if prompt_ids is None or (not written and counted):
        raise MissingTokens("the service returns no token ids; vLLM does from 0.10.2 on")
    logprobs = [float(entry["logprob"]) for entry in entries]
    if len(logprobs) != len(written):
        raise MissingTokens(f"the service returns {len(written)} token ids and {len(logprobs)} logprobs")
    return dict(zip(TOKEN_FIELDS, (list(prompt_ids), list(written), logprobs), strict=True))


def _complete(written: list[int], counted: Any) -> None:
    """llama.cpp leaves out the first parts of a character that takes several tokens. Raises MissingTokens."""
    if written and counted is not None and counted != len(written):
        raise MissingTokens(
            f"the service wrote {counted} tokens and names {len(written)} of them; llama.cpp leaves out parts of a "
            "character such as an emoji"
        )
