"""The switch in a configuration: ``observability_enabled`` records model calls under ``model_call_capture_dir``."""

from __future__ import annotations

from gymkit.config import Config
from gymkit.errors import ConfigError
from gymkit.servers.capture import FileCapture


def capture_of(config: Config) -> FileCapture | None:
    """Where the model servers of ``config`` record their calls; None where that is not switched on.

    Raises ConfigError without a directory, and for one that cannot be used.
    """
    enabled, directory = config.tree.get("observability_enabled"), config.tree.get("model_call_capture_dir")
    if enabled not in (None, True, False):
        raise ConfigError(f"observability_enabled must be true or false, not {enabled!r:.80}")
    if not enabled:
        return None
    if not isinstance(directory, str) or not directory:
        raise ConfigError("observability_enabled needs model_call_capture_dir, an absolute path")
    return FileCapture(directory)
