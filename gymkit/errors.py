"""Every error that gymkit raises.

::

    GymkitError
    ├── ConfigError            a YAML file, an override or an argument is wrong
    │   └── MissingExtra       an optional package is not installed
    ├── InputError             task rows that cannot be run, all of them at once
    ├── StoreError             an artifact on disk cannot be used
    │   ├── StoreLocked        another collector writes there
    │   └── ResumeMismatch     a resume with another configuration or other tasks
    ├── WireError              an object that does not have the shape the contract asks for
    ├── JudgeFailed            a judge model could not be called, or scored outside its scale
    ├── JudgeUnparseable       a judge model's answer could not be read
    ├── ServerError            a call to a server did not end well (has kind, server, url)
    │   ├── Unreachable        no connection
    │   ├── CallTimeout        no answer within the bound
    │   ├── Redirected         a 3xx, which is never followed
    │   ├── BadStatus          any other status that is not 2xx
    │   ├── NotJson            a body that is not JSON
    │   └── InvalidReply       JSON of the wrong shape
    ├── IncompleteRun          a run that was required to be complete is not
    └── TooManyMasked          a run for training that cannot be trained on, as its token ids are not to be rebuilt

A failed rollout is data (a row in the sidecar), not an exception; these are for what
stops a command, and for the inside of the servers, which turn them into rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class GymkitError(Exception):
    """Root of the tree: ``except gymkit.GymkitError`` catches whatever gymkit raises on purpose."""


class ConfigError(GymkitError):
    """A configuration file, an override or an argument is wrong; the message names it and the nearest right name."""


class MissingExtra(ConfigError):
    """An optional package is not installed; the message says what it is for and how to install it."""

    def __init__(self, package: str, extra: str, purpose: str, *, command: str | None = None) -> None:
        command = command or f"pip install 'gymkit[{extra}]'"
        super().__init__(f"{purpose} needs the package {package!r}: {command}")


class InputError(GymkitError):
    """Task rows that cannot be run. ``problems`` has one sentence each: file, row number, field."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        head = f"{len(self.problems)} problems with the task rows" if len(self.problems) != 1 else "1 problem"
        super().__init__("\n".join([f"{head}; nothing was started:", *(f"  {line}" for line in self.problems)]))


class StoreError(GymkitError):
    """An artifact on disk cannot be read or written; the message names the file (and line)."""


class StoreLocked(StoreError):
    """Another collector holds the output file."""


class ResumeMismatch(StoreError):
    """A resume whose configuration or tasks differ from the run on disk; ``differences`` names each."""

    def __init__(self, path: str, differences: Sequence[str]) -> None:
        self.differences = list(differences)
        super().__init__(
            f"{path} holds another run, so a resume would mix the two: {'; '.join(self.differences)}. "
            "Give the original settings to resume, or another output path to start anew."
        )


class WireError(GymkitError):
    """An object does not have the shape that the contract asks for. ``problems``: one ``path: reason`` each."""

    def __init__(self, what: str, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__(f"{what} is invalid: {'; '.join(self.problems)}")


class JudgeFailed(GymkitError):
    """A judge model could not be called, or gave a score outside its scale: the rollout was not measured."""


class JudgeUnparseable(GymkitError):
    """A judge model answered, but not in the form that was asked for: the rollout was not measured."""


class ServerError(GymkitError):
    """A call to a server did not end well.

    ``kind`` groups failures of one sort, ``server`` is the server's name in the configuration, ``url`` what was
    called; ``terminal`` says that asking again cannot help.
    """

    kind: str = "server"
    terminal: ClassVar[bool] = False

    def __init__(self, message: str, *, server: str, url: str) -> None:
        self.server = server
        self.url = url
        super().__init__(message)


class Unreachable(ServerError):
    """No connection could be made, or it broke before an answer."""

    kind = "unreachable"


class CallTimeout(ServerError):
    """No answer within the bound; the message names the knob that sets it."""

    kind = "timeout"


class Redirected(ServerError):
    """The server answered with a 3xx, which is never followed; the message shows its ``Location``."""

    kind = "redirect"


class BadStatus(ServerError):
    """The server answered with a status that is neither 2xx nor 3xx. ``status`` holds it.

    ``kind`` is the one that the server named, where what broke is a call of its own to a server behind it.
    """

    kind = "http_status"

    def __init__(self, message: str, *, server: str, url: str, status: int, kind: str | None = None) -> None:
        self.status = status
        if kind is not None:
            self.kind = kind
        super().__init__(message, server=server, url=url)


class NotJson(ServerError):
    """The server answered with a body that is not JSON."""

    kind = "not_json"


class InvalidReply(ServerError):
    """The server answered with JSON of the wrong shape; asking again cannot help."""

    kind = "invalid_response"
    terminal = True


class IncompleteRun(GymkitError):
    """A run that was required to be complete lacks results; the artifacts stay."""


class TooManyMasked(GymkitError):
    """More rollouts are masked for want of their token ids than ``max_mask_fraction`` allows; the artifacts stay."""
