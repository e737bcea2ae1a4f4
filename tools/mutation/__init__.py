"""Mutation testing: change one expression, and see whether a test that runs it fails."""
