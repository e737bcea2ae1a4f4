"""Parses and analyzes shell commands: what they run, read and write."""
