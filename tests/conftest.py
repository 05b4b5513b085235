"""What holds for every test."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

signal.signal(signal.SIGINT, signal.default_int_handler)
# A shell starts what it puts in the background with Ctrl-C ignored, and children inherit that: tests of an
# interrupt would wait for ever.

settings.register_profile("gymkit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gymkit")
# Timing lives in benchmarks: on a busy machine a slow example is no fault.
