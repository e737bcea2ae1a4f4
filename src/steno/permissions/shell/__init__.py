"""Parses and analyzes shell commands: the programs they run, and the files they read and write."""
