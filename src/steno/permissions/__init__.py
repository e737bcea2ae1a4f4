"""Decides whether a tool call may run: rules, shell analysis, paths, trust and the sandbox."""
