"""Mutation testing: change one expression, and check whether a test that runs it fails."""
