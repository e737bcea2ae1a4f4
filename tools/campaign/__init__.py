"""The campaign: tests every promise at a size that fits the given time, and records the figures."""
