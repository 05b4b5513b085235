"""What a configuration has recorded: ``observability_enabled`` model calls, ``token_id_capture`` token ids."""

from __future__ import annotations

from gymkit.config import Config
from gymkit.errors import ConfigError
from gymkit.sdk.token_capture import directory_of, token_capture_of
from gymkit.servers.capture import Capture, FileCapture
from gymkit.servers.token_files import TokenFiles


def capture_of(config: Config) -> Capture | None:
    """Where the model servers of ``config`` record their calls; None where nothing is switched on.

    Raises ConfigError without a directory, and for one that cannot be used.
    """
    calls = _calls(config)
    tokens = directory_of(config, token_capture_of(config))
    return calls if tokens is None else TokenFiles(tokens, calls)


def _calls(config: Config) -> FileCapture | None:
    enabled, directory = config.tree.get("observability_enabled"), config.tree.get("model_call_capture_dir")
    if enabled not in (None, True, False):
        raise ConfigError(f"observability_enabled must be true or false, not {enabled!r:.80}")
    if not enabled:
        return None
    if not isinstance(directory, str) or not directory:
        raise ConfigError("observability_enabled needs model_call_capture_dir, an absolute path")
    return FileCapture(directory)
