"""Benchmarks: each is a command, ``python -m tests.bench.NAME``, and measures gymkit against a named alternative."""
