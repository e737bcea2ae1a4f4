"""The demo: recorded sessions that `steno demo` and `--demo` write and read."""
