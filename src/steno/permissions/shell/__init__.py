"""Parses and analyses shell commands: what they run, read and write."""
