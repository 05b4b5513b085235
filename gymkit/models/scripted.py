"""``scripted_model``: says what a script says; for tests, lessons and demonstrations without a model.

A reply is a text, an item or a list of items (``gymkit.testing.agent`` has ``answer`` and ``call``), a whole Response,
or a ``Fault``. With ``token_ids`` it has tokens too: its tokenizer is UTF-8, a byte a token.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gymkit.models.script import Script
from gymkit.servers.call import ModelCall, ModelFailed
from gymkit.servers.capture import Capture
from gymkit.servers.fault import Fault
from gymkit.servers.model import ModelServer
from gymkit.wire.dialects.ids import mint
from gymkit.wire.dialects.reasoning import reasoning_text
from gymkit.wire.dialects.tokens import TOKEN_FIELDS
from gymkit.wire.responses import content_text, message_text


class ScriptedModelConfig(BaseModel):
    """The settings; a script that is a Python function is given to ``ScriptedModel`` itself."""

    model_config = ConfigDict(extra="forbid")

    replies: list[Any] = Field(default_factory=list)
    """The script, a list: each rollout hears it from its beginning."""
    seconds: float = Field(0.0, ge=0, allow_inf_nan=False)
    """How long it takes to answer."""
    token_ids: bool = False
    """Whether replies carry token ids and logprobs, and usage counts them."""


class ScriptedModel(ModelServer):
    """The server. ``script`` stands in place of ``config.replies``."""

    implementation = "scripted_model"

    def __init__(
        self, name: str, config: ScriptedModelConfig, *, script: Script | None = None, capture: Capture | None = None
    ) -> None:
        super().__init__(name, capture=capture)
        self.config = config
        self._script = script if script is not None else Script(config.replies)

    async def responses(self, params: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        """The script's next reply as a Response. Raises ModelFailed for a Fault."""
        call.asked()
        reply = self._script.next(params, call.rollout)
        if inspect.isawaitable(reply):
            reply = await reply
        if self.config.seconds:
            await asyncio.sleep(self.config.seconds)
        if isinstance(reply, Fault):
            await _fail(reply, call)
        call.answered()
        response = _response(reply, params, self.name)
        if self.config.token_ids or call.training:
            call.tokens = _tokens(params, response["output"])
            response.setdefault("usage", _usage(call.tokens))
        return response


async def _fail(fault: Fault, call: ModelCall) -> None:
    await asyncio.sleep(fault.seconds)
    call.upstream_status_code = fault.status
    after = next((value for name, value in fault.headers.items() if name.lower() == "retry-after"), None)
    raise ModelFailed(
        fault.status,
        fault.body.decode("utf-8", "replace"),
        kind="scripted_fault",
        retry_after=None if after is None else float(after),
    )


def _response(reply: Any, params: Mapping[str, Any], model: str) -> dict[str, Any]:
    fields = dict(reply) if isinstance(reply, Mapping) and "output" in reply else {"output": _items(reply)}
    asked = {name: params[name] for name in ("tools", "tool_choice", "parallel_tool_calls") if params.get(name)}
    return {
        "id": mint("resp"),
        "object": "response",
        "created_at": time.time(),
        "model": model,
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **asked,
        **fields,
    }


def _items(reply: Any) -> list[dict[str, Any]]:
    if isinstance(reply, str):
        return [_said(reply)]
    items = [reply] if isinstance(reply, Mapping) else reply
    if isinstance(items, list) and all(isinstance(item, str) or "type" in item for item in items):
        return [_said(item) if isinstance(item, str) else {**item} for item in items]
    message = f"the script's reply must be a text, items, a Response or a Fault, not {reply!r:.100}"
    raise ModelFailed(500, message, kind="script_invalid")


def _said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": mint("msg"), "role": "assistant", "status": "completed", "content": content}


def _tokens(params: Mapping[str, Any], output: list[dict[str, Any]]) -> dict[str, Any]:
    """The conversation in bytes: a later prompt begins with an earlier one and its reply, as a real model's does."""
    content = params["input"]
    items = [{"role": "user", "content": content}] if isinstance(content, str) else content
    system = [{"role": "system", "content": params["instructions"]}] if params.get("instructions") else []
    prompt, written = _bytes([*system, *items]), _bytes(output)
    return dict(
        zip(TOKEN_FIELDS, (list(prompt), list(written), [-0.125 * (1 + byte % 8) for byte in written]), strict=True)
    )


def _bytes(items: list[dict[str, Any]]) -> bytes:
    return "".join(map(_rendered, items)).encode("utf-8", "replace")


def _rendered(item: Mapping[str, Any]) -> str:
    match item.get("type") or "message":
        case "message":
            return f"<{item['role']}>{message_text(dict(item))}\n"
        case "reasoning":
            return f"<think>{reasoning_text(item) or ''}\n"
        case "function_call":
            return f"<call>{item['name']}({item['arguments']})\n"
        case "function_call_output":
            return f"<result>{content_text(item['output'])}\n"
        case kind:
            return f"<{kind}>\n"


def _usage(tokens: Mapping[str, Any]) -> dict[str, Any]:
    read, written = len(tokens["prompt_token_ids"]), len(tokens["generation_token_ids"])
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
