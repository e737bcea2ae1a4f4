"""Text of a session in, safe HTML out."""
