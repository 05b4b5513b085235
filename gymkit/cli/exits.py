"""Exit statuses: what a script can tell from how a command ended.

0 finished (failed rollouts included) · 1 a mistake or an incomplete run, told in one sentence · 2 wrong usage ·
130 Ctrl-C · 143 SIGTERM.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer

from gymkit.errors import GymkitError


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does: what is done is kept."""


@contextmanager
def exits() -> Iterator[None]:
    """Turn what ends a command into its exit status; decorates every command."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except GymkitError as error:
        typer.secho("Error: ", fg="red", nl=False, err=True)
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except Terminated:
        raise typer.Exit(143) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone; Python would complain once more at its end
        raise typer.Exit(1) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_: int, __: FrameType | None) -> NoReturn:
    raise Terminated
