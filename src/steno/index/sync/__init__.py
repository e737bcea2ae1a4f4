"""Brings the index up to date: scan, extraction, row building and batch writing."""
