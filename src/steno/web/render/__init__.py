"""Rendering of session content as HTML."""
