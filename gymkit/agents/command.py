"""A command-line agent: a program is run once a rollout, and what it prints is its answer.

Its model calls come to the rollout's own address, which it finds in ``OPENAI_BASE_URL`` and ``ANTHROPIC_BASE_URL``;
the environment's tools are at ``GYMKIT_MCP_URL``. Its home and its working folder are private to the rollout. When the
rollout ends, everything that it started ends with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePath

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gymkit.agents.desk import Desk, as_text
from gymkit.agents.desk_mcp import PATH, DeskMcp
from gymkit.agents.failure import RolloutFailed
from gymkit.agents.harness import API_KEY, MODEL_NAME, Harness
from gymkit.agents.program import HeldOpen, Printed, Program, TooMuch
from gymkit.wire import codec

_INHERITED = (
    *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "SHELL", "USER", "LOGNAME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "VIRTUAL_ENV", "SYSTEMROOT", "COMSPEC", "PATHEXT", "WINDIR"),
)
"""What a program needs to run; keys, logins and proxies of this process are not among it."""

_TAIL = 2_000
"""Characters of what a program wrote to stderr that a message shows."""


class CommandConfig(BaseModel):
    """How a program is run."""

    model_config = ConfigDict(extra="forbid")

    argv: list[str] = Field(min_length=1)
    """The program and its arguments. ``{prompt}`` is the prompt, ``{prompt_file}`` a file that holds it; without either
    it comes on stdin. ``{folder}``, ``{model}``, ``{base_url}`` (the model's address as OpenAI's clients take it),
    ``{mcp_url}`` and ``{mcp_config}`` (a file in the common form) too."""
    template: str = "{conversation}"
    """The prompt: ``{conversation}`` is what the task says, ``{tools}`` the JSON of the tools that it offers."""
    answer: str | None = None
    """Where the answer is in what is printed: a JSON field (``result``, ``message.text``); None: all of it."""
    env: dict[str, str] = Field(default_factory=dict)
    """Laid over the environment variables."""
    files: dict[str, str] = Field(default_factory=dict)
    """Put into the working folder before: name to text."""
    skills_dir: str = "skills"
    """Where in the working folder the run's skills are put, for example ``.claude/skills``; one folder each."""
    output_limit: int = Field(1_000_000, gt=0)
    """Bytes that it may print; more is a failure."""

    @field_validator("skills_dir")
    @classmethod
    def _inside(cls, value: str) -> str:
        path = PurePath(value)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError("must be a folder inside the working folder")
        return value


class Command(Harness):
    """The harness. ``has_model`` says whether there is a model behind the address."""

    label = "command"

    def __init__(self, config: CommandConfig, *, has_model: bool = True) -> None:
        self.config = config
        self._has_model = has_model

    async def work(self, desk: Desk) -> str:
        """Run the program. Raises RolloutFailed for a status that is not 0, and for an answer that cannot be read."""
        desk.seat.others[PATH] = DeskMcp(desk).answer
        prompt = self._prompt(desk)
        argv, stdin = self._arranged(desk, prompt)
        try:
            program = await Program.start(
                argv, folder=desk.folder / "work", env=self._variables(desk), limit=self.config.output_limit
            )
        except (OSError, ValueError) as error:
            hint = "; a long prompt goes through stdin or {prompt_file}" if "{prompt}" in self.config.argv else ""
            raise RolloutFailed(f"{self._program} cannot be run: {error}{hint}", kind="agent_error") from error
        try:
            return self._read(await program.finish(stdin))
        except TooMuch:
            message = f"{self._program} printed more than output_limit={self.config.output_limit} bytes"
            raise RolloutFailed(message, kind="invalid_response") from None
        except HeldOpen:
            message = f"{self._program} left something running that holds its output open"
            raise RolloutFailed(message, kind="agent_error") from None

    def _read(self, printed: Printed) -> str:
        """The answer in what was printed."""
        status, out, err = printed
        told = err.decode("utf-8", "replace").strip()[-_TAIL:] or out.decode("utf-8", "replace").strip()[-_TAIL:]
        if status:
            how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
            raise RolloutFailed(f"{self._program} {how}: {told or '(it printed nothing)'}", kind="agent_error")
        if self.config.answer is None:
            return out.decode("utf-8", "replace").strip()
        try:
            value = codec.loads(out)
        except ValueError as error:
            shown = out.decode("utf-8", "replace").strip()[:300]
            raise RolloutFailed(f"{self._program} printed no JSON ({error}): {shown!r}", kind="not_json") from error
        for key in self.config.answer.split("."):
            if not isinstance(value, dict) or key not in value:
                message = f"{self._program} printed JSON without the field {self.config.answer!r}"
                raise RolloutFailed(message, kind="invalid_response")
            value = value[key]
        return value if isinstance(value, str) else codec.dumps(value).decode()

    def _prompt(self, desk: Desk) -> str:
        tools = codec.dumps(desk.tools).decode()
        parts = {"{conversation}": as_text(desk.conversation()), "{tools}": tools}
        return _filled(self.config.template, parts)

    def _arranged(self, desk: Desk, prompt: str) -> tuple[list[str], bytes]:
        """The folder, the arguments, and what comes on stdin."""
        for place in ("work", "home", "tmp"):
            (desk.folder / place).mkdir()
        work = desk.folder / "work"
        for name, text in self.config.files.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        if desk.skills is not None:
            skills = work / self.config.skills_dir
            skills.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(desk.skills, skills)
        mcp_url, mcp_config, prompt_file = self._mcp(desk), desk.folder / "mcp.json", desk.folder / "prompt.txt"
        prompt_file.write_bytes(prompt.encode("utf-8", "replace"))
        mcp_config.write_bytes(codec.dumps({"mcpServers": {"environment": {"type": "http", "url": mcp_url}}}))
        parts = {
            "{prompt}": prompt,
            "{prompt_file}": str(prompt_file),
            "{folder}": str(work),
            "{model}": MODEL_NAME,
            "{base_url}": f"{desk.seat.model_url}/v1",
            "{mcp_url}": mcp_url,
            "{mcp_config}": str(mcp_config),
        }
        argv = [_filled(part, parts) for part in self.config.argv]
        told = any("{prompt}" in part or "{prompt_file}" in part for part in self.config.argv)
        return argv, b"" if told else prompt.encode("utf-8", "replace")

    def _variables(self, desk: Desk) -> Mapping[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        private = {"HOME": desk.folder / "home", "TMPDIR": desk.folder / "tmp"}
        variables = {
            **inherited,
            **{name: str(path) for name, path in private.items()},
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
            "GYMKIT_MCP_URL": self._mcp(desk),
        }
        if self._has_model:
            url = desk.seat.model_url
            variables |= {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url}
            variables |= {"OPENAI_API_KEY": API_KEY, "ANTHROPIC_API_KEY": API_KEY}
        return {**variables, **self.config.env}

    def _mcp(self, desk: Desk) -> str:
        return f"{desk.seat.url}{PATH}"

    @property
    def _program(self) -> str:
        return Path(self.config.argv[0]).name


def _filled(text: str, parts: Mapping[str, str]) -> str:
    """``text`` with each placeholder filled in once: what is filled in is not looked through again."""
    for name, value in parts.items():
        before, found, after = text.partition(name)
        if found:
            return _filled(before, parts) + value + _filled(after, parts)
    return text
