"""Sandboxes for programs: Landlock, namespaces and seccomp on Linux, Seatbelt on macOS."""
