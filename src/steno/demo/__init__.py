"""Recorded demo sessions for `steno demo` and `--demo`."""
