"""What holds for every test."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
# A shell starts what it puts in the background with Ctrl-C ignored, and children inherit that: tests of an
# interrupt would wait for ever.
