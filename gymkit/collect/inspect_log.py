"""Logs of Inspect AI, ``.eval`` and ``.json``, read without Inspect AI."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

from gymkit.collect.imported import Attempt, Foreign
from gymkit.errors import ConfigError, MissingExtra, StoreError
from gymkit.wire.conversations import Call, Message

GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's letters: correct, partially correct, incorrect, no answer."""

_LIMITS: Final = {"time": "deadline", "working": "deadline", "message": "max_steps", "turn": "max_steps"}
_ZSTD: Final = 93
_LOCAL_HEADER: Final = 30
_ATTACHED: Final = "attachment://"


def read_log(path: Path, *, scorer: str | None = None) -> Foreign:
    """The run in the log at ``path``; rewards are the scores of ``scorer``, by default of the first.

    Raises StoreError for a file that is no log, ConfigError for a scorer that is not there, and MissingExtra for a
    log compressed with zstd (Inspect AI 0.3.150 and later) without pyarrow.
    """
    log = _Zipped(path) if zipfile.is_zipfile(path) else _Whole(path)
    spec = log.header.get("eval")
    if not isinstance(spec, Mapping):
        raise StoreError(f"{path} is no log of Inspect AI: it has no eval")
    names = [each["name"] for each in spec.get("scorers") or ()]
    if scorer is not None and names and scorer not in names:
        raise ConfigError(f"{path} has no scorer {scorer!r}; there are {', '.join(names)}")
    wanted = scorer or (names[0] if names else None)
    epochs = (spec.get("config") or {}).get("epochs") or 1
    ids = (spec.get("dataset") or {}).get("sample_ids") or ()
    return Foreign(
        program="inspect_ai",
        environment=str(spec.get("task", "task")),
        agent=str(spec.get("model", "model")),
        file=path,
        planned=[(str(name), epoch) for name in ids for epoch in range(epochs)],
        attempts=(_attempt(sample, wanted) for sample in log.samples()),
    )


class _Whole:
    """A log in one JSON file."""

    def __init__(self, path: Path) -> None:
        try:
            content = json.loads(path.read_bytes())  # Inspect writes NaN for a missing score, which is no JSON
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise StoreError(f"{path} is neither a zip file nor JSON: {error}") from error
        self.header: dict[str, Any] = content if isinstance(content, dict) else {}

    def samples(self) -> Iterator[dict[str, Any]]:
        yield from self.header.get("samples") or ()


class _Zipped:
    """A log in a zip file with one member a sample."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with zipfile.ZipFile(path) as archive:
            self._members = {member.filename: member for member in archive.infolist()}
        head = next((name for name in ("header.json", "_journal/start.json") if name in self._members), None)
        if head is None:
            raise StoreError(f"{path} is no log of Inspect AI: it has no header.json")
        with path.open("rb") as file:
            self.header: dict[str, Any] = json.loads(_member(file, self._members[head]))

    def samples(self) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as file:
            for name, member in self._members.items():
                if name.startswith("samples/"):
                    yield json.loads(_member(file, member))


def _member(file: IO[bytes], member: zipfile.ZipInfo) -> bytes:
    """The content of a member. Python reads zstd from 3.14 on only, so its bytes are taken as they lie."""
    if member.compress_type != _ZSTD:
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            return archive.read(member)
    if find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", "parquet", "A log of Inspect AI that is compressed with zstd")
    import pyarrow as pa

    file.seek(member.header_offset)
    name, extra = struct.unpack("<HH", file.read(_LOCAL_HEADER)[26:30])
    file.seek(name + extra, io.SEEK_CUR)
    data: bytes = pa.CompressedInputStream(pa.BufferReader(file.read(member.compress_size)), "zstd").read()
    return data


def _attempt(sample: Mapping[str, Any], scorer: str | None) -> Attempt:
    scores = sample.get("scores") or {}
    components = dict(pair for name, score in scores.items() for pair in _numbers(name, score.get("value")))
    error, limit = sample.get("error"), sample.get("limit")
    attached = sample.get("attachments") or {}
    return Attempt(
        task_id=str(sample["id"]),
        rollout=int(sample.get("epoch", 1)) - 1,
        messages=tuple(_message(message, attached) for message in _messages(sample)),
        reward=_number(scores[scorer].get("value")) if scorer in scores else None,
        components=components if len(components) > 1 else {},
        error=None if error is None else str(error.get("message", "")),
        error_kind="inspect_error",
        termination=_LIMITS.get(limit.get("type"), "incomplete") if limit else "message",
        model=str((sample.get("output") or {}).get("model", "")),
        usage=_usage((sample.get("model_usage") or {}).values()),
        seconds=sample.get("total_time"),
        started_at=_moment(sample.get("started_at")),
        fields={"target": sample.get("target"), **(sample.get("metadata") or {})},
    )


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """The numbers of one score by name: one, or one for each key of a dict."""
    values = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, Mapping) else {name: value}
    yield from ((key, number) for key, each in values.items() if (number := _number(each)) is not None)


def _number(value: Any) -> float | None:
    """A score as a number; None for what is none, such as the NaN of a sample that was not scored."""
    if isinstance(value, str):
        return GRADES.get(value)
    if not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _messages(sample: Mapping[str, Any]) -> list[Any]:
    """The conversation; what was asked, where it never began."""
    asked = sample.get("input")
    own: list[Any] = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked or []
    return sample.get("messages") or own


def _message(message: Mapping[str, Any], attached: Mapping[str, str]) -> Message:
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    calls = [
        Call(str(call.get("id", "")), str(call.get("function", "")), call.get("arguments", {}))
        for call in message.get("tool_calls") or ()
    ]
    text = "".join(_text(part, attached) for part in parts if part.get("type") != "reasoning")
    error = message.get("error")
    return Message(
        role=str(message.get("role", "user")),
        text=text if error is None or text else str(error.get("message", "")),
        reasoning="\n".join(_thought(part, attached) for part in parts if part.get("type") == "reasoning"),
        calls=tuple(calls),
        call_id=str(message.get("tool_call_id") or ""),
    )


def _text(part: Mapping[str, Any], attached: Mapping[str, str]) -> str:
    if part.get("type") == "text":
        return _resolved(str(part.get("text", "")), attached)
    return f"[{part.get('type')}]"


def _thought(part: Mapping[str, Any], attached: Mapping[str, str]) -> str:
    if part.get("redacted"):
        return str(part.get("summary") or "")
    return _resolved(str(part.get("reasoning", "")), attached)


def _resolved(text: str, attached: Mapping[str, str]) -> str:
    """Long content lies beside the messages, under its digest."""
    return attached.get(text.removeprefix(_ATTACHED), text) if text.startswith(_ATTACHED) else text


def _usage(models: Iterable[Mapping[str, Any]]) -> dict[str, int] | None:
    """The tokens of all models of a sample; None where none were counted."""
    names = {
        "input": "input_tokens",
        "output": "output_tokens",
        "total": "total_tokens",
        "cached": "input_tokens_cache_read",
        "reasoning": "reasoning_tokens",
    }
    every = list(models)
    return {name: sum(each.get(key) or 0 for each in every) for name, key in names.items()} if every else None


def _moment(text: Any) -> float | None:
    return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
